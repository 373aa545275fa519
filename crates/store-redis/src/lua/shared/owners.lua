-- Shared by the scripts that heed owners, besides those that only `touch`. A thread with an owner has the text in its
-- field O and the tag behind its meta, and stands in two sets of its bucket, :o:TAG and :c:TAG.

-- Formats of threads: plain, and with an owner, so that servers of an earlier version leave those alone; each is 1 more
-- if the last turn is exclusive.
local PLAIN, OWNED, LAST_FORMAT = 1, 3, 4

-- Why a caller may not use a thread with that meta, or false for none: see `touch`.
local function owner_refusal(m, access)
  if access == '' or not m or #m == META_BYTES or access == sub(m, META_BYTES + 1) then return nil end
  return {'R', access == '-' and 'owner_required' or 'not_the_owner'}
end

-- Whether a thread with that meta has yet to be bound to the owner of its caller.
local function is_unbound(m, access)
  return #m == META_BYTES and access ~= '' and access ~= '-'
end

-- One of the sets of an owner's threads, next to that thread.
local function owned_key(thread, kind, tag)
  return sub(thread, 1, find(thread, '}:t:', 1, true)) .. kind .. tag
end

-- Puts a thread into the sets of its owner.
local function list_owned(thread, id, tag, created, updated)
  call('ZADD', owned_key(thread, ':c:', tag), created, id)
  call('ZADD', owned_key(thread, ':o:', tag), updated, id)
end

-- Takes a thread out of the sets of its owner.
local function unlist_owned(thread, id, tag)
  call('ZREM', owned_key(thread, ':c:', tag), id)
  call('ZREM', owned_key(thread, ':o:', tag), id)
end
