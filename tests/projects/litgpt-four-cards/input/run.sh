#!/usr/bin/env bash
# eight samples between steps, two on each of the four cards
litgpt finetune_full --config full.yaml --devices 4
litgpt finetune_full --config not-here.yaml
