-- Makes a namespace unless there is one, and perhaps changes its default lifetime.
-- KEYS: 1 namespaces: when each was made, whether it has a default lifetime, and which; 2 the time
--       and name of each, in the order of their bytes.
-- ARGV: 1 ahead, 2 name, 3 default lifetime in milliseconds (0: for ever), `-` for none, or nothing
--       to leave it as it is.
-- Reply: what 1 has of it.
local record = call('HGET', KEYS[1], ARGV[2])
if record and ARGV[3] == '' then return record end
local created = record and sub(record, 1, 6) or pack('>I6', now(tonumber(ARGV[1])))
local ttl = tonumber(ARGV[3])
local new = created .. pack('>BI6', ttl and 1 or 0, ttl or 0)
call('HSET', KEYS[1], ARGV[2], new)
if not record then call('ZADD', KEYS[2], 0, created .. ARGV[2]) end
return new
