-- Entries of namespaces. The namespace and the key select the bucket, so a large namespace uses all buckets. Keys of a
-- bucket:
--   :k:HASH    an entry: its end (0: never), last put or use, number of uses; then head and body. Expires at its end
--   :kh        a hash: heads by member
--   :kn        a sorted set: members in byte order
--   :kx        a sorted set: members by end
--   :kc        a hash by namespace: number of entries, bytes of their bodies, last put or use
--   :ki:HASH   answers remembered with an entry: see records.lua
-- A member is 16 bytes of the hash of the namespace's name, followed by the key. A head has the format, version, life,
-- creation time, update time, ttl (0: forever) and bytes of the body; then the lengths of the content type and the
-- encoding, then both strings. A life number identifies one existence of an entry. Expired entries remain in all keys
-- except :k:HASH until they are purged.
local USES, HEAD, COUNTS = '>I6I6I6', '>BI6c8I6I6I6I4', '>I6I6I6'
local HEAD_AT, HEAD_BYTES = 19, 37
local NO_LIFE = '\0\0\0\0\0\0\0\0'
-- Maximum number of expired entries that a script purges in addition to its own work.
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

-- Returns whether an entry was last put before `since`. Such an entry belonged to an earlier namespace
-- with the same name, and has ended with it.
local function ended_with_namespace(head, since)
  if since == 0 or #head < HEAD_BYTES then return false end
  local _, _, _, _, updated = unpack_(HEAD, head)
  return updated < since
end

-- Returns two values: the head of a member, or nil if the member does not exist or has expired; and the head regardless
-- of expiry. `k` has the keys of heads, members, ends and counts.
local function head_of(k, member, ahead, since)
  local head = call('HGET', k.heads, member)
  if not head then return nil end
  local ends = call('ZSCORE', k.ends, member)
  if ends and tonumber(ends) <= now(ahead) or ended_with_namespace(head, since) then return nil, head end
  return head, head
end

-- Removes a member from all keys of the bucket except the entry itself.
local function drop(k, member)
  local head = call('HGET', k.heads, member)
  call('ZREM', k.ends, member)
  if not head then return end
  call('HDEL', k.heads, member)
  call('ZREM', k.members, member)
  local _, _, _, _, _, _, bytes = unpack_(HEAD, head)
  count(k.counts, member, -1, -bytes, 0)
end

-- Drops up to `limit` expired members, and returns their number. Call it after all commands that use memory: a full
-- Redis must reject these commands, but accepts them once a script has written.
local function purge(k, limit, ahead)
  local ended = call('ZRANGEBYSCORE', k.ends, '-inf', fmt('%.0f', now(ahead)), 'LIMIT', 0, limit)
  for _, member in ipairs(ended) do drop(k, member) end
  return #ended
end
