-- Entries of namespaces. Namespace and key select the bucket, so a large namespace uses all buckets:
--   :k:HASH    an entry: end (0: never), last put or use, number of uses; then its head and its body. Expires at its end
--   :kh        heads by member
--   :kn        members in byte order
--   :kx        members by end
--   :kc        by namespace: entries, bytes of their bodies, last put or use
--   :ki:HASH   answers remembered with an entry: see records.lua
-- A member is 16 bytes of the hash of the namespace's name, then the key. A head: format, version, life, created, updated,
-- ttl (0: forever), bytes of the body; then lengths and texts of content type and encoding. Expired entries stay in all keys
-- except :k:HASH until they are purged.
local USES, HEAD, COUNTS = '>I6I6I6', '>BI6c8I6I6I6I4', '>I6I6I6'
local HEAD_AT, HEAD_BYTES = 19, 37
local NOBODY = '\0\0\0\0\0\0\0\0'
-- Entries that a call for another purpose purges.
local PURGED = 20

local function count(counts, member, entries, bytes, used)
  local namespace = sub(member, 1, 16)
  local n, b, u, c = 0, 0, 0, call('HGET', counts, namespace)
  if c then n, b, u = unpack_(COUNTS, c) end
  if n + entries > 0 then
    call('HSET', counts, namespace, pack(COUNTS, n + entries, b + bytes, math.max(u, used)))
  else
    call('HDEL', counts, namespace)
  end
end

-- Whether an entry was last put before `since`, and so ended with an earlier life of its namespace.
local function is_of_the_past(head, since)
  if since == 0 or #head < HEAD_BYTES then return false end
  local _, _, _, _, updated = unpack_(HEAD, head)
  return updated < since
end

-- Returns the head of a living member, then its head in any case. `k`: keys of heads, members, ends and counts.
local function head_of(k, member, ahead, since)
  local head = call('HGET', k.heads, member)
  if not head then return nil end
  local ends = call('ZSCORE', k.ends, member)
  if ends and tonumber(ends) <= now(ahead) or is_of_the_past(head, since) then return nil, head end
  return head, head
end

-- Removes a member from all keys except its entry.
local function drop(k, member)
  local head = call('HGET', k.heads, member)
  call('ZREM', k.ends, member)
  if not head then return end
  call('HDEL', k.heads, member)
  call('ZREM', k.members, member)
  local _, _, _, _, _, _, bytes = unpack_(HEAD, head)
  count(k.counts, member, -1, -bytes, 0)
end

-- Drops up to `most` expired members, and returns their number. Call it after commands that use memory: once a script has
-- written, a full Redis no longer rejects them.
local function purge(k, most, ahead)
  local ended = call('ZRANGEBYSCORE', k.ends, '-inf', fmt('%.0f', now(ahead)), 'LIMIT', 0, most)
  for _, member in ipairs(ended) do drop(k, member) end
  return #ended
end
