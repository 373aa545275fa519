-- Looks up a remembered answer. KEYS: 1 remembered answers. ARGV: 1 `ahead`, 2 idempotency key and request.
-- Reply: nil, an answer of write.lua, or a refusal.
return recall(KEYS[1], ARGV[2], tonumber(ARGV[1]), 'W') or false
