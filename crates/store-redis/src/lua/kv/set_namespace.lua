-- Creates a namespace unless it exists, and changes its settings.
-- KEYS: 1 to 4 as in namespaces.lua; with an idempotency key, 5 the remembered answers.
-- ARGV: 1 `ahead`, 2 name, 3 default lifetime in milliseconds (0: forever), 4 idle time in milliseconds; for 3 and 4,
--   `-` means none, and empty means no change; 5 idempotency key or empty, 6 usage of the namespace, which the script
--   only adds to the reply, so that a replay returns the same usage.
-- Reply: `N`, replayed flag, record and usage; or a refusal as in write.lua.
local k, ahead, name = namespace_keys(), tonumber(ARGV[1]), ARGV[2]
local given, memory = recall(KEYS[5], ARGV[5], ahead, 'N')
if given then return given end
local old = record_of(k, name, ahead)
if old and ARGV[3] == '' and ARGV[4] == '' then return {'N', 0, old, ARGV[6]} end

local created = old and sub(old, 1, 6) or pack('>I6', now(ahead))
local default, idle = old and sub(old, 7, RECORD_BYTES), old and #old == IDLE_BYTES and sub(old, IDLE_AT) or ''
if ARGV[3] ~= '' or not old then
  local ttl = tonumber(ARGV[3])
  default = pack('>BI6', ttl and 1 or 0, ttl or 0)
end
if ARGV[4] ~= '' then
  local ttl = tonumber(ARGV[4])
  idle = ttl and pack(IDLE, ttl, now(ahead) + ttl + LATE) or ''
end
local new = created .. default .. idle
call('HSET', k.names, name, new)
if not old then call('ZADD', k.newest, 0, created .. name) end
if idle == '' then
  call('ZREM', k.idle, name)
else
  local _, ends = unpack_(IDLE, idle)
  call('ZADD', k.idle, fmt('%.0f', ends), name)
end
local answer = {'N', 0, new, ARGV[6]}
if memory then remember(memory, answer, #new + #ARGV[6], REMEMBERED_MS, ahead) end
return answer
