-- Destroys a thread: moves it to the archive, and leaves a tombstone, which refuses writes to the thread's id.
-- KEYS: 1 thread, 2 remembered answers, 3 log, 4 archive, 5 archives.
-- ARGV: 1 `ahead`, 2 precondition, 3 idempotency key or empty, 4 lifetime of the tombstone in milliseconds, 5 lifetime of
--   the archive, 6 turn token or empty, 7 `access`, 8 trace or empty.
-- Reply: `D`, replayed flag, 1 if the thread existed, else 0; or a refusal as in write.lua.
trace = ARGV[8]
local key, ahead, tombstone = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[4])
local k = {thread = key, log = KEYS[3], archive = KEYS[4], archives = KEYS[5]}
local m, left, dead = living(key, ahead)
local refusal = owner_refusal(m, ARGV[7])
if refusal then return refusal end
local given, memory = recall(KEYS[2], ARGV[3], ahead, 'D')
if given then return given end

local version, life = 0, NO_LIFE
if m then life, version = unpack_(LIFE, m, LIFE_AT) end
if ARGV[6] ~= '' or m and byte(m) % 2 == 0 then
  refusal = turn_refusal(key, m, ARGV[6], ahead)
  if refusal then return refusal end
end
if not is_met(ARGV[2], version, life) then return {'R', 'version_mismatch', version, life} end

local kept = 0
if m then
  end_life(k, m, DESTROYED_BY_HAND, now(ahead), ahead, tonumber(ARGV[5]))
  if tombstone > 0 then
    call('HSET', key, 'T', '1')
    call('PEXPIRE', key, tombstone + ahead)
    call('HSET', k.archive, 'T', fmt('%.0f', now(ahead) + tombstone))
  end
  kept = tombstone
  local records_ms = math.max(REMEMBERED_MS, tombstone)
  if forget_soon(KEYS[2], records_ms, ahead) and memory then memory.left = records_ms + ahead end
  forget_soon(beside(key, ':j:'), records_ms, ahead)
elseif dead then
  end_life(k, dead, EXPIRED, ended_at(dead, left, ahead), ahead, tonumber(ARGV[5]))
elseif left > ahead then
  kept = left - ahead
end
local answer = {'D', 0, m and 1 or 0}
if memory then remember(memory, answer, 0, kept, ahead) end
return answer
