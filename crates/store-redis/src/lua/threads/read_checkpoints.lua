-- Lists checkpoints. KEYS: 1 thread, 2 checkpoints. ARGV: 1 `ahead`, 2 `access`.
-- Reply: nil, a refusal, or meta of the thread and the fields of the index.
local m, refusal = touch(KEYS[1], tonumber(ARGV[1]), ARGV[2])
if not m then return refusal end
return {m, newest_of(KEYS[2], m) and call('HGETALL', KEYS[2]) or {}}
