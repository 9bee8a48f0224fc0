#!/bin/bash
axolotl preprocess llama3.yml
axolotl train llama3.yml --num-epochs 1
CUDA_VISIBLE_DEVICES=0 axolotl train qlora.yml --launcher python
