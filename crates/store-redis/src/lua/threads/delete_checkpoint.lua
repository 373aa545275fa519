-- Deletes a checkpoint.
-- KEYS: 1 thread, 2 remembered answers, 3 checkpoints. ARGV: 1 to 5 as in save_checkpoint.lua, 6 number of the checkpoint.
-- Reply: `Q`, replayed flag, meta of the thread; or a refusal.
local key, index, ahead = KEYS[1], KEYS[3], tonumber(ARGV[1])
local m, answer, memory, lives = open_thread(key, KEYS[2], 'Q', ahead, ARGV[2], ARGV[3], ARGV[4], ARGV[5])
if not m then return answer or {'R', 'thread_not_found'} end
if not newest_of(index, m) or call('HEXISTS', index, ARGV[6]) == 0 then return {'R', 'checkpoint_not_found'} end
settle(key)
write_even_when_full(index)
call('UNLINK', index .. ':' .. ARGV[6])
call('HDEL', index, ARGV[6])
touch(key, ahead, '')
answer = {'Q', 0, m}
if memory then remember(memory, answer, 0, lives, ahead) end
return answer
