-- Reads threads for a list, without extending their lifetimes. If a thread does not exist or has a different owner,
-- removes the thread from the list.
-- KEYS: threads. ARGV: 1 `ahead`, 2 tag of the owner, or empty for all owners, 3 lifetime of an archive.
-- Reply: for each thread nil, or meta, metadata or nil, milliseconds to live, current time, owner or nil.
local ahead, tag, reply = tonumber(ARGV[1]), ARGV[2], {}
for i, key in ipairs(KEYS) do
  local m, left, dead = living(key, ahead)
  local listed = m or dead
  reply[i] = false
  if tag ~= '' and (not listed or sub(listed, META_BYTES + 1) ~= tag) then
    -- the thread's data is lost, but the log may still name the thread's keys
    if not listed then list_ended(key, id_of(key), NO_LIFE, tag, ahead, tonumber(ARGV[3])) end
    unlist_owned(key, id_of(key), tag)
  elseif m then
    local ttl, ends, _, grace = unpack_(TIMES, m, TIMES_AT)
    local lives = left - grace * 1000 - ahead
    if ends > 0 then lives = math.min(lives, ends - now(ahead)) end
    reply[i] = {m, call('HGET', key, 'D'), lives, fmt('%.0f', now(ahead)), #m > META_BYTES and call('HGET', key, 'O')}
  end
end
return reply
