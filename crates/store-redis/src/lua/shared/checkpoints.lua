-- Shared by the scripts about checkpoints. Those of a thread are a hash, its index:
--   L          the life, and the number of its newest checkpoint so far
--   N          checkpoint N: version, bytes of the state, bytes that count for the limit, when it was made; then its name
-- Next to it, in its slot, each is a copy of the thread's hash as it was, without owner and turn. They have no time to live
-- of their own: they end with the thread.
local SAVED = '>I6I4I4I6'
local INDEX_LIFE = '>c8I4'

-- Whether an index is of the life of the thread with that meta, and the number of its newest checkpoint.
local function newest_of(index, m)
  local packed = call('HGET', index, 'L')
  local life, newest = unpack_(INDEX_LIFE, packed or '\0\0\0\0\0\0\0\0\0\0\0\0')
  return packed and life == sub(m, LIFE_AT, LIFE_END), newest
end
