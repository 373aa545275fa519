-- Saves a checkpoint of a thread.
-- KEYS: 1 thread, 2 remembered answers, 3 checkpoints.
-- ARGV: 1 `ahead`, 2 `access`, 3 idempotency key or empty, 4 precondition, 5 turn token or empty, 6 name or empty, 7 maximum
--   number of checkpoints of a thread, 8 maximum total size of these checkpoints in bytes.
-- Reply: `P`, replayed flag, meta of the thread, number of the checkpoint, creation time; or a refusal.
local key, index, ahead = KEYS[1], KEYS[3], tonumber(ARGV[1])
local m, answer, memory, lives = open_thread(key, KEYS[2], 'P', ahead, ARGV[2], ARGV[3], ARGV[4], ARGV[5])
if not m then return answer or {'R', 'thread_not_found'} end
local _, life, version, bytes, keys = unpack_('>Bc8I6I4I4', m)
local state, metadata = keys > 0 and bytes + 1 or 2, call('HSTRLEN', key, 'D')
local held, count = state + (metadata > 0 and metadata or 2), 0
local total = held
local is_current, newest = newest_of(index, m)
if is_current then
  local fields = call('HGETALL', index)
  for i = 1, #fields, 2 do
    if fields[i] ~= 'L' then
      local _, _, bytes_held = unpack_(SAVED, fields[i + 1])
      count, total = count + 1, total + bytes_held
    end
  end
else
  newest = 0
end
if count >= tonumber(ARGV[7]) or total > tonumber(ARGV[8]) then return {'R', 'too_many_checkpoints'} end

settle(key)
if not is_current then drop_checkpoints(key) end
local number = newest + 1
local copy = index .. ':' .. number
call('COPY', key, copy, 'REPLACE')
call('PERSIST', copy)
call('HDEL', copy, 'O', 'U', 'N')
call('HSET', copy, 'M', string.char(PLAIN) .. sub(m, 2, META_BYTES))
call('HSET', index, 'L', pack(INDEX_LIFE, life, number), number, pack(SAVED, version, state, held, now(ahead)) .. ARGV[6])
touch(key, ahead, '')
answer = {'P', 0, m, number, fmt('%.0f', now(ahead))}
if memory then remember(memory, answer, 0, lives, ahead) end
return answer
