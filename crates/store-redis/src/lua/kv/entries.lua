-- Shared by the scripts on entries of namespaces, which are next to the threads of a bucket, in its slot. Which bucket
-- is by namespace and key, so that a large namespace is in all of them:
--   :k:HASH    an entry: when it ends (0: never), when it was last put or used, how often it was used;
--              then its head and its body. It has an expiry, which is its end.
--   :kh        heads by member
--   :kn        members in the order of their bytes
--   :kx        members by when they end
--   :kc        of each namespace: entries, bytes of their bodies, when one was last put or used
--   :ki:HASH   the answers that are remembered with an entry: see records.lua
-- A member is 16 bytes of the hash of the namespace's name, and the key as text. A head: format, version, life,
-- created, updated, ttl (0: for ever), bytes of the body; then lengths and texts of content type and encoding.
--
-- Expired entries stay in all keys except :k:HASH until they are purged.
local USES, HEAD, COUNTS = '>I6I6I6', '>BI6c8I6I6I6I4', '>I6I6I6'
local HEAD_AT, HEAD_BYTES = 19, 37
local NOBODY = '\0\0\0\0\0\0\0\0'
-- The number of entries that one call of another purpose purges.
local PURGED = 20

-- Adds to the counts of a member's namespace.
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

-- Whether an entry has ended with an earlier life of its namespace: it was last put before that time.
local function is_of_the_past(head, since)
  if since == 0 or #head < HEAD_BYTES then return false end
  local _, _, _, _, updated = unpack_(HEAD, head)
  return updated < since
end

-- The head of a member that lives; then its head in any case. `k` has the keys of heads, members,
-- ends and counts; `since`: see is_of_the_past.
local function head_of(k, member, ahead, since)
  local head = call('HGET', k.heads, member)
  if not head then return nil end
  local ends = call('ZSCORE', k.ends, member)
  if ends and tonumber(ends) <= now(ahead) or is_of_the_past(head, since) then return nil, head end
  return head, head
end

-- Takes a member out of all but its entry.
local function drop(k, member)
  local head = call('HGET', k.heads, member)
  call('ZREM', k.ends, member)
  if not head then return end
  call('HDEL', k.heads, member)
  call('ZREM', k.members, member)
  local _, _, _, _, _, _, bytes = unpack_(HEAD, head)
  count(k.counts, member, -1, -bytes, 0)
end

-- Drops up to `most` expired members, and returns their number. Runs after commands that take memory, which a full
-- Redis would not refuse any longer.
local function purge(k, most, ahead)
  local ended = call('ZRANGEBYSCORE', k.ends, '-inf', fmt('%.0f', now(ahead)), 'LIMIT', 0, most)
  for _, member in ipairs(ended) do drop(k, member) end
  return #ended
end
