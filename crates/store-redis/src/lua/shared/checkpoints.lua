-- The index of a thread's checkpoints is a hash:
--   L   the life of the thread, and the highest checkpoint number so far
--   N   checkpoint N: version, bytes of the state, bytes that count toward the limit, creation time; then its name
-- Each checkpoint is a copy of the thread's hash without owner, turn and TTL, in the same hash slot. Checkpoints end
-- with the thread.
local SAVED = '>I6I4I4I6'
local INDEX_LIFE = '>c8I4'

-- Returns whether a checkpoint index belongs to the life with meta `m`, and the highest checkpoint number so far.
local function newest_of(index, m)
  local packed = call('HGET', index, 'L')
  local life, newest = unpack_(INDEX_LIFE, packed or '\0\0\0\0\0\0\0\0\0\0\0\0')
  return packed and life == sub(m, LIFE_AT, LIFE_END), newest
end
