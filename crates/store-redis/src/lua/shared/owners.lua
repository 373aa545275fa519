-- If a thread has an owner, field O contains the owner's name, the owner's tag follows the meta, and the sets :o:TAG
-- and :c:TAG of the thread's bucket contain the thread.

-- Format numbers of a thread without an owner and with an owner. The numbers differ, so that older servers reject a
-- thread with an owner. If the last turn is exclusive, the format number is one higher.
local PLAIN, OWNED, LAST_FORMAT = 1, 3, 4

-- Returns a refusal if the caller may not use the thread with meta `m`, else nil. For `access`, see `touch`.
local function owner_refusal(m, access)
  if access == '' or not m or #m == META_BYTES or access == sub(m, META_BYTES + 1) then return nil end
  return {'R', access == '-' and 'owner_required' or 'not_the_owner'}
end

-- Returns whether the caller acts for an owner, but the thread with meta `m` does not have an owner yet.
local function is_unbound(m, access)
  return #m == META_BYTES and access ~= '' and access ~= '-'
end

local function owned_key(thread, kind, tag)
  return sub(thread, 1, find(thread, '}:t:', 1, true)) .. kind .. tag
end

local function list_owned(thread, id, tag, created, updated)
  call('ZADD', owned_key(thread, ':c:', tag), created, id)
  call('ZADD', owned_key(thread, ':o:', tag), updated, id)
end

local function unlist_owned(thread, id, tag)
  call('ZREM', owned_key(thread, ':c:', tag), id)
  call('ZREM', owned_key(thread, ':o:', tag), id)
end
