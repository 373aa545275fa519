-- Flag of a scope whose history may have segments.
local SEGMENTED = 2

-- Returns the segments that have not expired, with functions for scripts that have read the scope.
local function living_segments(k, s, ahead)
  local all, living = segments_of(k.scope), {}
  for _, g in ipairs(all.list) do
    if g.ends > now(ahead) then living[#living + 1] = g end
  end
  all.list = living
  function all.ids()
    local keys = {}
    for i, g in ipairs(living) do
      local _, ids = all.keys(g.number)
      keys[i] = ids
    end
    return keys
  end
  -- Stores the segments that are still needed, and deletes the others. A segment is needed while an item of its summary
  -- exists in the history or in a newer segment.
  function all.put()
    local kept, places, parts = {}, {k.ids}, {}
    for j = #all.list, 1, -1 do
      local g, is_kept = all.list[j], false
      local stream, ids = all.keys(g.number)
      local names = {}
      for id in string.gmatch(g.ids, '%S+') do names[#names + 1] = id end
      -- the next newer segment usually has these items
      for i = g.count > 0 and #places or 0, 1, -1 do
        for _, known in ipairs(call('HMGET', places[i], unpack(names))) do is_kept = is_kept or known end
        if is_kept then break end
      end
      if is_kept then
        table.insert(kept, 1, g)
        places[#places + 1] = ids
      else
        call('UNLINK', stream, ids)
      end
    end
    for i, g in ipairs(kept) do
      parts[i] = pack(SEGMENT, g.number, g.first, g.through, g.count, g.bytes, g.made, g.ends, #g.ids) .. g.ids
    end
    call('HSET', k.scope, 'S', pack(SEGMENTS, all.last, all.through, all.new) .. table.concat(parts))
    s.flags = s.flags % SEGMENTED + (#kept > 0 and SEGMENTED or 0)
  end
  -- Removes all segments. Later segments continue the numbering.
  function all.clear()
    all.drop()
    all.list = {}
    all.put()
  end
  -- Adds a segment, and drops the oldest segments that exceed `most` or `max_bytes`. Returns how many were dropped.
  function all.add(segment, most, max_bytes)
    local list, bytes, dropped = all.list, segment.bytes, 0
    for _, g in ipairs(list) do bytes = bytes + g.bytes end
    list[#list + 1] = segment
    while #list > most or bytes > max_bytes do
      local oldest = table.remove(list, 1)
      bytes, dropped = bytes - oldest.bytes, dropped + 1
      call('UNLINK', all.keys(oldest.number))
    end
    return dropped
  end
  -- Makes segments whose summary has an item at or before `through` expire no later than `ends`, or now if `ends` is 0.
  function all.cut(through, ends)
    local list = all.list
    all.list = {}
    for _, g in ipairs(list) do
      local _, items = string.gsub(g.ids, '%S+', '')
      if g.through - items < through and g.ends > ends then
        g.ends = ends
        for _, key in ipairs({all.keys(g.number)}) do call('PEXPIRE', key, math.max(0, ends - now(ahead) + ahead)) end
      end
      if g.ends > 0 then all.list[#all.list + 1] = g end
    end
  end
  -- Returns an original item, its segment, and the keys of the segment's ids and items; or nil.
  function all.find(id)
    for _, g in ipairs(all.list) do
      local stream, ids = all.keys(g.number)
      local known = call('HGET', ids, id)
      if known then
        local place = fmt('%.0f-0', (unpack_('>I6', known)))
        return call('XRANGE', stream, place, place)[1], g, ids, stream
      end
    end
  end
  function all.remove(id)
    local item, g, ids, stream = all.find(id)
    call('XDEL', stream, item[1])
    call('HDEL', ids, id)
    g.count, g.bytes = g.count - 1, g.bytes - bytes_of(item)
    mark_items(k.scope, {id}, {place_of(item)})
    all.put()
  end
  return all
end
