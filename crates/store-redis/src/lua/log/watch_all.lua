-- Starts logging the changes of all threads.
-- KEYS: 1 a key that exists while all changes are logged.
-- ARGV: 1 `ahead`, 2 duration, 3 maximum delay until every server process has seen the key.
-- Reply: time after which all changes are logged.
local ahead, lasts = tonumber(ARGV[1]), tonumber(ARGV[2])
local left, since = call('PTTL', KEYS[1]), call('GET', KEYS[1])
if not since or left <= ahead then since, left = fmt('%.0f', now(ahead) + tonumber(ARGV[3])), 0 end
if left < lasts + ahead then call('SET', KEYS[1], since, 'PX', lasts + ahead) end
return since
