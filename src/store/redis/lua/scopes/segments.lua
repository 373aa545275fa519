-- Segments of histories: the originals of what stands in the history, their summary.

-- In the flags of a scope, that its history may have segments.
local SEGMENTED = 2

-- The segments whose time has not passed, and operations of scripts that have read their scope.
local function living_segments(k, s, ahead)
  local all, living = segments_of(k.scope), {}
  for _, g in ipairs(all.list) do
    if g.ends > now(ahead) then living[#living + 1] = g end
  end
  all.list = living
  -- The keys with the ids of all originals.
  function all.ids()
    local keys = {}
    for i, g in ipairs(living) do
      local _, ids = all.keys(g.number)
      keys[i] = ids
    end
    return keys
  end
  -- Keeps those of which a summary is left: its items may be among the originals of a newer one.
  function all.put()
    local kept, places, parts = {}, {k.ids}, {}
    for j = #all.list, 1, -1 do
      local g, is_kept = all.list[j], false
      local stream, ids = all.keys(g.number)
      if g.count > 0 then
        for id in string.gmatch(g.ids, '%S+') do
          for _, key in ipairs(places) do is_kept = is_kept or call('HEXISTS', key, id) == 1 end
        end
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
    call('HSET', k.scope, 'S', pack('>I4', all.last) .. table.concat(parts))
    s.flags = s.flags % SEGMENTED + (#kept > 0 and SEGMENTED or 0)
  end
  -- Removes all. Their numbers go on.
  function all.clear()
    all.drop()
    all.list = {}
    all.put()
  end
  -- An original, with its segment and the key of its ids, or nil.
  function all.find(id)
    for _, g in ipairs(all.list) do
      local stream, ids = all.keys(g.number)
      local known = call('HGET', ids, id)
      local place = known and unpack_('>I6', known)
      if place and place <= g.through then
        return call('XRANGE', stream, fmt('%.0f-0', place), '+', 'COUNT', 1)[1], g, ids, stream
      end
    end
  end
  -- Removes an original.
  function all.remove(id)
    local item, g, ids, stream = all.find(id)
    call('XDEL', stream, item[1])
    call('HDEL', ids, id)
    g.count, g.bytes = g.count - 1, g.bytes - bytes_of(item)
    mark_items(k.scope, {id}, {place_of(item)})
    all.put()
  end
  -- Forgets what depends on items that were removed, also copies that trim_segment.lua has left.
  function all.tidy(ids, places)
    for _, g in ipairs(all.list) do
      local stream, its_ids = all.keys(g.number)
      for i, id in ipairs(ids) do
        if places[i] > g.through then
          call('XDEL', stream, fmt('%.0f-0', places[i]))
          call('HDEL', its_ids, id)
        end
      end
    end
    all.put()
  end
  return all
end
