-- The threads of a bucket, sorted by id, each with the time of its next check in whole seconds. A small sorted set
-- needs a fifth as much memory per member as a large sorted set, so the threads are in groups of up to GROUP_SIZE
-- consecutive ids. The first group has an empty name; any other group is named after its lowest possible id.
--   :g         names of all groups but the first, sorted
--   :gx        the same names by a time that is no later than the earliest check of the group
--   :g:NAME    a group: packed ids by the time of their next check
-- Earlier server versions kept all threads of a bucket in two sets: `:d` by the time of the next check, and `:n` by id.
local GROUP_SIZE, RANDOM_ID_BYTES = 128, 37

-- Returns an id in the form that groups store: a random id as 16 bytes, any other id unchanged. An unchanged id cannot
-- be mistaken for a packed id, because every id has at least 32 bytes.
local function pack_id(id)
  if #id == RANDOM_ID_BYTES and find(id, '^thrd_[0-9a-f]+$') then
    return pack('>I4I4I4I4', tonumber(sub(id, 6, 13), 16), tonumber(sub(id, 14, 21), 16), tonumber(sub(id, 22, 29), 16),
      tonumber(sub(id, 30), 16))
  end
  return id
end

local function unpack_id(packed)
  if #packed == 16 then return fmt('thrd_%08x%08x%08x%08x', unpack_('>I4I4I4I4', packed)) end
  return packed
end

-- Returns the index of a bucket as a table of functions. `start` is the common prefix of its keys. The functions are
-- defined inside this function, because each top-level function costs time in every call of a script.
local function index_at(start)
  local index = {}

  -- Returns the name of the group to which an id belongs.
  function index.group_of(id)
    return call('ZREVRANGEBYLEX', start .. 'g', '[' .. id, '-', 'LIMIT', 0, 1)[1] or ''
  end

  -- Moves the upper half of a full group to a new group. Redis sorts the ids, because Lua compares strings by locale.
  local function split(group)
    local members, by_id, checks, sorting = call('ZRANGE', group, 0, -1, 'WITHSCORES'), {}, {}, start .. 'gs'
    for i = 1, #members, 2 do
      local id = unpack_id(members[i])
      by_id[i], by_id[i + 1], checks[id] = 0, id, members[i + 1]
    end
    call('UNLINK', sorting)
    call('ZADD', sorting, unpack(by_id))
    local ids, gone, moved = call('ZRANGE', sorting, GROUP_SIZE / 2, -1), {}, {}
    call('UNLINK', sorting)
    for i, id in ipairs(ids) do
      gone[i] = pack_id(id)
      moved[2 * i - 1], moved[2 * i] = checks[id], gone[i]
    end
    local name = ids[1]
    local new = start .. 'g:' .. name
    call('ZADD', new, unpack(moved))
    call('ZADD', start .. 'gx', call('ZRANGE', new, 0, 0, 'WITHSCORES')[2], name)
    call('ZADD', start .. 'g', 0, name)
    call('ZREM', group, unpack(gone))
  end

  -- Adds an id with its next check time in milliseconds. If the index contains the id, only returns its check time.
  function index.add(id, check_ms)
    local name, packed, check = index.group_of(id), pack_id(id), math.floor(check_ms / 1000)
    local group = start .. 'g:' .. name
    if call('ZADD', group, 'NX', check, packed) == 0 then return call('ZSCORE', group, packed) * 1000 end
    if name ~= '' then call('ZADD', start .. 'gx', 'LT', check, name) end
    if call('ZCARD', group) == GROUP_SIZE then split(group) end
    return nil
  end

  -- Returns the time of an id's next check in milliseconds, or nil if the index does not contain the id.
  function index.check_of(id)
    local check = call('ZSCORE', start .. 'g:' .. index.group_of(id), pack_id(id))
    if check then return check * 1000 end
    check = call('ZSCORE', start .. 'd', id)
    return check and tonumber(check)
  end

  -- Changes the time of an id's next check. If `how` is `LT`, only an earlier time replaces the stored time.
  function index.check_at(id, check_ms, how)
    local name, packed, check = index.group_of(id), pack_id(id), math.floor(check_ms / 1000)
    local group = start .. 'g:' .. name
    if not call('ZSCORE', group, packed) then return call('ZADD', start .. 'd', 'XX', how or 'CH', check_ms, id) end
    call('ZADD', group, 'XX', how or 'CH', check, packed)
    if name ~= '' then call('ZADD', start .. 'gx', 'XX', 'LT', check, name) end
  end

  function index.remove(id)
    local name = index.group_of(id)
    local group = start .. 'g:' .. name
    index.remove_earlier(id)
    if call('ZREM', group, pack_id(id)) == 1 and name ~= '' and call('EXISTS', group) == 0 then
      call('ZREM', start .. 'g', name)
      call('ZREM', start .. 'gx', name)
    end
  end

  -- Removes an id from the sets `:d` and `:n` of earlier versions. Returns its check time, or nil if `:d` lacks the id.
  function index.remove_earlier(id)
    local check = call('ZSCORE', start .. 'd', id)
    if not check then return nil end
    call('ZREM', start .. 'd', id)
    call('ZREM', start .. 'n', id)
    return tonumber(check)
  end

  return index
end

local function index_of(thread)
  return index_at(sub(thread, 1, find(thread, '}:t:', 1, true)) .. ':')
end
