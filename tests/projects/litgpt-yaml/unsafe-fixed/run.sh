#!/usr/bin/env bash
litgpt finetune_lora --config lora.yaml
