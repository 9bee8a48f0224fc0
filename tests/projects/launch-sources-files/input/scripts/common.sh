# what all launches share
CARDS=${CARDS:-2}
MODEL=Qwen/Qwen2.5-7B
