#!/bin/bash
fabric run --strategy deepspeed_stage_2 --devices 4 --precision bf16-mixed train.py
