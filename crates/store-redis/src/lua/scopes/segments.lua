-- Flag of a scope whose history may have segments.
local SEGMENTED = 2

-- Returns the unexpired segments of a history, with more functions than `segments_of` returns. `s` is the opened scope.
local function living_segments(k, s, ahead)
  local segments, living = segments_of(k.scope), {}
  for _, g in ipairs(segments.list) do
    if g.ends > now(ahead) then living[#living + 1] = g end
  end
  segments.list = living
  function segments.ids()
    local keys = {}
    for i, g in ipairs(living) do
      local _, ids = segments.keys(g.number)
      keys[i] = ids
    end
    return keys
  end
  -- Stores the segments that are needed, and deletes all other segments. A segment is needed while an item of its
  -- summary exists in the history or in a newer segment.
  function segments.put()
    local kept, id_keys, parts = {}, {k.ids}, {}
    for j = #segments.list, 1, -1 do
      local g, is_kept = segments.list[j], false
      local stream, ids = segments.keys(g.number)
      local names = {}
      for id in string.gmatch(g.ids, '%S+') do names[#names + 1] = id end
      -- the next newer segment usually has these items
      for i = g.count > 0 and #id_keys or 0, 1, -1 do
        for _, known in ipairs(call('HMGET', id_keys[i], unpack(names))) do is_kept = is_kept or known end
        if is_kept then break end
      end
      if is_kept then
        table.insert(kept, 1, g)
        id_keys[#id_keys + 1] = ids
      else
        call('UNLINK', stream, ids)
      end
    end
    for i, g in ipairs(kept) do
      parts[i] = pack(SEGMENT, g.number, g.first, g.through, g.count, g.bytes, g.made, g.ends, #g.ids) .. g.ids
    end
    call('HSET', k.scope, 'S', pack(SEGMENTS, segments.last, segments.through, segments.new) .. table.concat(parts))
    s.flags = s.flags % SEGMENTED + (#kept > 0 and SEGMENTED or 0)
  end
  -- Removes all segments. Later segments continue the numbering.
  function segments.clear()
    segments.drop()
    segments.list = {}
    segments.put()
  end
  -- Adds a segment, and drops the oldest segments that exceed `max_count` or `max_bytes`. Returns the number dropped.
  function segments.add(segment, max_count, max_bytes)
    local list, bytes, dropped = segments.list, segment.bytes, 0
    for _, g in ipairs(list) do bytes = bytes + g.bytes end
    list[#list + 1] = segment
    while #list > max_count or bytes > max_bytes do
      local oldest = table.remove(list, 1)
      bytes, dropped = bytes - oldest.bytes, dropped + 1
      call('UNLINK', segments.keys(oldest.number))
    end
    return dropped
  end
  -- Makes a segment expire no later than `ends` (0: now) if its summary has an item at or before position `through`.
  function segments.cut(through, ends)
    local list = segments.list
    segments.list = {}
    for _, g in ipairs(list) do
      local _, items = string.gsub(g.ids, '%S+', '')
      if g.through - items < through and g.ends > ends then
        g.ends = ends
        for _, key in ipairs({segments.keys(g.number)}) do call('PEXPIRE', key, math.max(0, ends - now(ahead) + ahead)) end
      end
      if g.ends > 0 then segments.list[#segments.list + 1] = g end
    end
  end
  -- Finds an original item by id. Returns the item, its segment, and the keys of the segment's ids and items; or nil.
  function segments.find(id)
    for _, g in ipairs(segments.list) do
      local stream, ids = segments.keys(g.number)
      local known = call('HGET', ids, id)
      if known then
        local position = fmt('%.0f-0', (unpack_('>I6', known)))
        return call('XRANGE', stream, position, position)[1], g, ids, stream
      end
    end
  end
  function segments.remove(id)
    local item, g, ids, stream = segments.find(id)
    call('XDEL', stream, item[1])
    call('HDEL', ids, id)
    g.count, g.bytes = g.count - 1, g.bytes - bytes_of(item)
    record_removed(k.scope, {id}, {position_of(item)})
    segments.put()
  end
  return segments
end
