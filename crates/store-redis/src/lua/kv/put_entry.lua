-- Puts an entry. The keys are described in entries.lua.
-- KEYS: 1 entry, 2 heads, 3 members, 4 ends, 5 counts; with an idempotency key, 6 the remembered answers of the entry.
-- ARGV: 1 `ahead`, 2 member, 3 precondition, 4 ttl in milliseconds or 0, 5 random life number for a new entry, 6 the
--   entry: placeholders for the numbers that the script sets, so that it need not copy the body; content type and
--   encoding, each with its length; the body; 7 size of content type and encoding with their lengths in bytes, 8
--   cutoff: an entry last put before it ended with its namespace, 9 idempotency key or empty, 10 `1` to remember a
--   failed precondition.
-- Reply: `P`, replayed flag, version, life, end (0: never; -1: precondition failed), 1 if the entry exists; or a
--   refusal as in write.lua.
local entry, ahead, member, ttl = KEYS[1], tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[4])
local k = {heads = KEYS[2], members = KEYS[3], ends = KEYS[4], counts = KEYS[5]}
local given, memory = recall(KEYS[6], ARGV[9], ahead, 'P')
local at, since = now(ahead), tonumber(ARGV[8])
local head, listed = head_of(k, member, ahead, since)
if given then
  if given[1] == 'P' then given[6] = head and 1 or 0 end
  return given
end
local version, life, created, uses, _ = 0, NO_LIFE, at, 0
if head then _, version, life, created = unpack_(HEAD, head) end
if not is_met(ARGV[3], version, life) then
  if memory and ARGV[10] == '1' then
    remember(memory, {'P', 0, version, life, -1, 1}, 8, REMEMBERED_MS, ahead)
  end
  return {'R', 'version_mismatch', version, life}
end

if head then
  local counted = call('GETRANGE', entry, 12, 17)
  if #counted == 6 then uses = unpack_('>I6', counted) end
else
  life = ARGV[5]
end
version = version + 1
local ends = ttl > 0 and at + ttl or 0
local texts_at = HEAD_AT + HEAD_BYTES
local texts = sub(ARGV[6], texts_at, texts_at + tonumber(ARGV[7]) - 1)
local bytes = #ARGV[6] - texts_at + 1 - #texts
local new = pack(HEAD, 1, version, life, created, at, ttl, bytes)
if ends > 0 then
  call('SET', entry, ARGV[6], 'PXAT', fmt('%.0f', ends))
  call('ZADD', k.ends, fmt('%.0f', ends), member)
else
  call('SET', entry, ARGV[6])
  if listed then call('ZREM', k.ends, member) end
end
call('SETRANGE', entry, 0, pack(USES, ends, at, uses) .. new)
call('HSET', k.heads, member, new .. texts)
if listed then
  local _, _, _, _, _, _, before = unpack_(HEAD, listed)
  count(k.counts, member, 0, bytes - before, at)
else
  call('ZADD', k.members, 0, member)
  count(k.counts, member, 1, bytes, at)
end
purge(k, PURGED, ahead)
local answer = {'P', 0, version, life, ends, 1}
if memory then remember(memory, answer, 8, REMEMBERED_MS, ahead) end
return answer
