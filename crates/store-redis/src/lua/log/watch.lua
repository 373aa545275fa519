-- Starts logging the changes of a thread, even if the thread does not exist yet.
-- KEYS: 1 thread, 2 key that exists during the watch, 3 log, 4 horizon, 5 scope of the thread. ARGV: 1 `ahead`, 2
--   duration.
-- Reply: version, life, newest position of the log or nil, newest deleted position, and meta of the scope or nil.
local ahead, lasts = tonumber(ARGV[1]), tonumber(ARGV[2])
local version, life, scope = 0, NO_LIFE, false
local m = living(KEYS[1], ahead)
if m then
  life, version = unpack_(LIFE, m, LIFE_AT)
  scope = call('HGET', KEYS[5], 'M')
  -- a scope with a different life remains from an earlier life, because the end of that life was not noticed
  if scope and sub(scope, LIFE_AT, LIFE_END) ~= life then scope = false end
  if unpack_('>I6', m, WATCHED_AT) < now(ahead) + lasts then
    call('HSET', KEYS[1], 'M', sub(m, 1, WATCHED_AT - 1) .. pack('>I6', now(ahead) + lasts) .. sub(m, META_BYTES + 1))
  end
end
if call('PTTL', KEYS[2]) < lasts + ahead then call('SET', KEYS[2], '1', 'PX', lasts + ahead) end
local newest = call('XREVRANGE', KEYS[3], '+', '-', 'COUNT', 1)[1]
return {version, life, newest and newest[1] or false, call('GET', KEYS[4]), scope}
