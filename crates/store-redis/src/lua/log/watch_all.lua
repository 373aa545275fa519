-- Has the changes of all threads logged.
-- KEYS: 1 mark. ARGV: 1 ahead, 2 for how long, 3 how late the last replica learns of it.
-- Reply: since when that is so without a break.
local ahead, lasts = tonumber(ARGV[1]), tonumber(ARGV[2])
local left, since = call('PTTL', KEYS[1]), call('GET', KEYS[1])
if not since or left <= ahead then since, left = fmt('%.0f', now(ahead) + tonumber(ARGV[3])), 0 end
if left < lasts + ahead then call('SET', KEYS[1], since, 'PX', lasts + ahead) end
return since
