-- Fast path: one push to each of several living threads that are not watched. The script neither converts between plain and
-- chunked arrays, nor drops more than one element. As in set.lua, each write has its own outcome, and lines with `--+`
-- insert parts of fast.lua.
-- KEYS: threads. ARGV: for each thread, policy, field, element, and window or 0.
-- Reply: the outcome, or an array of several outcomes: 0 if write.lua must do the write; new meta, time of the previous
--   write, length; a refusal as in write.lua; or an error. After a large value (`heavy`), the remaining writes are left to
--   write.lua, with one call each.
local try, outcomes, clock, heavy = redis.pcall, {}, nil, false
for i = 1, #KEYS do
  local at, outcome = 4 * (i - 1), 0
  repeat
    if heavy then break end
--+ open
    local window = tonumber(ARGV[at + 4])
    local text = call('HGET', key, f)
    heavy = text and #text > CHUNK_BYTES
    -- the new content of the field; the new length; name and new content of the last chunk and of the first chunk, if
    -- they change; the name of a chunk to delete
    local new, length, tail_name, tail, head_name, head, gone
    if text and byte(text) == 65 then
      if #text ~= HEADER_BYTES then outcome = {err = 'ERR threadkeep: a broken header'} break end
      local id, head_number, tail_number, first, next_, skip, tail_bytes, array_bytes = unpack_(ARRAY, text, 2)
      bytes, length = bytes - array_bytes, next_ - first + 1
      local added, is_head = #v + 1, false
      if tail_bytes + added > (array_bytes < SHORT_ARRAY_BYTES and SHORT_CHUNK_BYTES or CHUNK_BYTES) then
        tail_number = tail_number + 1
        tail_name, tail = fmt('c%d:%d', id, tail_number), fmt('%d\n', next_) .. v
        tail_bytes = #tail
      else
        tail_name = fmt('c%d:%d', id, tail_number)
        tail, tail_bytes = call('HGET', key, tail_name), tail_bytes + added
        if not tail then outcome = {err = 'ERR threadkeep: a chunk is missing'} break end
        tail = tail .. '\n' .. v
      end
      array_bytes = array_bytes + added
      if window > 0 and length > window then
        length = length - 1
        if length > window then break end
        head_name, is_head = fmt('c%d:%d', id, head_number), head_number == tail_number
        local size = is_head and tail_bytes or call('HSTRLEN', key, head_name)
        -- an oversized chunk contains a single element, so the script can drop the chunk without reading it
        local its_text = is_head and tail or size <= CHUNK_BYTES and call('HGET', key, head_name)
        local cut = its_text and find(its_text, '\n', skip + 2, true)
        first = first + 1
        if cut then
          array_bytes, skip = array_bytes - (cut - 1 - skip), cut - 1
          if skip > CHUNK_BYTES / 2 then
            local ordinal = fmt('%d', first)
            head, skip = ordinal .. sub(its_text, cut), #ordinal
            if is_head then tail, tail_bytes, head = head, #head, nil end
          end
        else
          array_bytes, skip = array_bytes - (size - skip), #fmt('%d', first)
          head_number, gone = head_number + 1, head_name
        end
        if array_bytes < CHUNK_BYTES / 2 then break end
      end
      bytes = bytes + array_bytes
      new = 'A' .. pack(ARRAY, id, head_number, tail_number, first, next_ + 1, skip, tail_bytes, array_bytes)
    else
      if text and byte(text) ~= 91 then outcome = {'R', 'not_an_array', 0} break end
      new = ((not text or text == '[]') and '[' or text) .. '\n' .. v
      if #new > CHUNK_BYTES then break end
      -- replacing with an empty string is the fastest way to count
      local _, count = string.gsub(new, '\n', '')
      length = count
      if window > 0 and count > window then
        local cut = 1
        for _ = 0, count - window do cut = find(new, '\n', cut + 1, true) end
        new, length = '[' .. sub(new, cut), window
      end
      if text then
        bytes = bytes - #text + #new
      else
        bytes, keys = bytes + #f + #new + 1, keys + 1
      end
    end
--+ check
    if gone then
      local dropped = try('HDEL', key, gone)
      if type(dropped) == 'table' then outcome = dropped break end
    end
    local set
    if head then
      set = try('HSET', key, f, new, 'M', m, tail_name, tail, head_name, head)
    elseif tail then
      set = try('HSET', key, f, new, 'M', m, tail_name, tail)
    else
      set = try('HSET', key, f, new, 'M', m)
    end
    if type(set) == 'table' then outcome = set break end
    outcome = {m, written, length}
--+ end
  until true
--+ outcome
end
return #KEYS == 1 and outcomes[1] or outcomes
