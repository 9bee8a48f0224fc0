BATCH=1
if [ "$1" = "large" ]; then
    BATCH=4
fi
read -r -d '' TRAINING <<EOF
train.py \
    --max_length 1024
EOF
