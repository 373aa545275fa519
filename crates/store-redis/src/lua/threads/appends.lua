-- Parts that are inserted into write.lua for operation lists that append to the history of their thread.
-- KEYS: as in write.lua, then 7 scope, 8 history, 9 ids of the history.
-- ARGV: as in write.lua, then id, value and fingerprint of each item; last, packed: number of items, maximum bytes of the
--   history, 1 to drop the oldest items to make room.
-- Reply: as in write.lua, then for each item `a` with its position, and 1 if the item is repeated. Refusals also as in
--   write_scope.lua, with the index of the item.
--+ items
local history = {scope = KEYS[7], history = KEYS[8], ids = KEYS[9]}
local n_items, max_history, drops_oldest = unpack_('>I4I6B', ARGV[#ARGV])
local items, first_item = {}, #ARGV - 3 * n_items
for j = first_item, #ARGV - 1 do items[#items + 1] = ARGV[j] end
-- the remaining arguments are operations
for j = #ARGV, first_item, -1 do ARGV[j] = nil end
--+ plan
local scope_meta = m and call('HGET', history.scope, 'M')
local scope = scope_meta and unpack_scope(scope_meta)
-- a scope with a different life remains from an earlier life, because the end of that life was not noticed
local scope_exists = scope and scope.life == life
if not scope_exists then scope = new_scope(life, 0, ahead) end
local plan = {next = scope.next, ids = scope_exists and history.ids,
  originals = scope_exists and scope.flags >= SEGMENTED and living_segments(history, scope, ahead).ids() or {},
  gone = {}, new = {}, added = 0, known = {}, positions = {}}
for j = 1, #items, 3 do
  refusal = plan_item(plan, items[j], items[j + 1], items[j + 2])
  if refusal then return refusal end
end
local dropped
if #plan.new > 0 then
  refusal, dropped = make_room(history, scope, plan, scope.history, max_history, drops_oldest == 1)
  if refusal then return refusal end
  if not scope_exists then settle(history.scope) end
end
for _, position in ipairs(plan.positions) do
  n_results = n_results + 1
  results[n_results] = 'a' .. position
end
--+ append
if #plan.new > 0 then
  if scope_meta and not scope_exists then segments_of(history.scope).drop() end
  if not scope_exists then call('UNLINK', history.scope, history.history, history.ids) end
  append_items(history, scope, plan, dropped, ahead)
  scope.version, scope.updated = scope.version + 1, now(ahead)
  call('HSET', history.scope, 'M', pack_scope(scope))
  if log_all == 1 or watched > now(ahead) then
    sequence = sequence + 1
    m = sub(m, 1, EVENTS_AT - 1) .. pack('>I4', sequence) .. sub(m, WATCHED_AT)
    call('HSET', key, 'M', m)
    log_event(k.log, APPENDED, 0, now(ahead), version + 1, sequence, life, id_of(key),
      fmt('%.0f %.0f', scope.next - #plan.new, scope.next - 1), ahead)
  end
end
