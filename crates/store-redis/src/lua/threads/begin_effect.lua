-- Begins an effect or its next attempt, or reads the effect as it is.
-- KEYS: 1 thread, 2 effects.
-- ARGV: 1 `ahead`, 2 `access`, 3 turn token or empty, 4 id, 5 tool and hash, each after its length, 6 `i` if the tool may run
--   again with the same key, 7 the attempt to retry or empty, 8 digest of the idempotency key or empty, 9 fence, 10
--   idempotency key of the effect if it is new.
-- Reply: as in effects.lua, or a refusal.
local key, ahead, retry = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[7])
local m = living(key, ahead)
local refusal = owner_refusal(m, ARGV[2])
if refusal then return refusal end
if not m then return {'R', 'turn_lost'} end
-- extends the lifetime last, because a full Redis rejects only the first write of a script
local function finish(reply)
  touch(key, ahead, '')
  return reply
end

-- Removes the effect at a position, and links its neighbours to each other.
local function remove_effect(g, position)
  local packed = call('HGET', g.key, effect_field('n', position))
  local e = unpack_effect(g, packed)
  local after = unpack_(POSITION, call('HGET', g.key, effect_field('a', e.position)))
  if e.before ~= 0 then call('HSET', g.key, effect_field('a', e.before), pack(POSITION, after)) else g.oldest = after end
  if after ~= 0 then
    local name = effect_field('n', after)
    local next_effect = call('HGET', g.key, name)
    call('HSET', g.key, name, sub(next_effect, 1, 4) .. pack(POSITION, e.before) .. sub(next_effect, 9))
  else
    g.newest = e.before
  end
  local result = effect_field('r', e.position)
  g.count, g.bytes = g.count - 1, g.bytes - call('HSTRLEN', g.key, result)
  call('HDEL', g.key, 'e' .. id_in(packed), result, effect_field('n', e.position), effect_field('a', e.position))
end

local turn, numbers = unpack(call('HMGET', key, 'U', 'N'))
refusal = holder_refusal(turn, numbers, ARGV[3], ahead)
if refusal then return finish(refusal) end
local number, complete, has_effects = numbers_of(turn, numbers)
local g = effects_of(KEYS[2], m)
-- an earlier server version may have lost the effects; without them, a tool could run twice
if has_effects == 1 and not g then return redis.error_reply('ERR threadkeep: the effects of a thread are missing') end
local e = g and effect_of(g, ARGV[4])
local fields = {}
if e then
  if e.tail ~= ARGV[5] .. ARGV[4] then return finish({'R', 'effect_reused', 0}) end
  local letter, asks_again = letter_of(e, turn, number), retry == e.attempt
  local is_next = letter == 'f' and asks_again or letter == 'i' and (asks_again or ARGV[6] == 'i')
  if not is_next then
    if letter == 'r' then
      return finish(effect_reply(g, e, ARGV[8] ~= '' and e.request == ARGV[8] and 'g' or 'r'))
    end
    -- this turn relies on the result, so keep the effect until this turn is complete
    if e.state ~= 0 and e.used ~= number then
      e.used = number
      call('HSET', g.key, field_of(g, e))
    end
    return finish(effect_reply(g, e, letter))
  end
  if letter == 'f' then
    if g.open >= OPEN_EFFECTS_MAX then return finish({'R', 'too_many_effects', 0}) end
    local result = effect_field('r', e.position)
    g.open, g.bytes = g.open + 1, g.bytes - call('HSTRLEN', g.key, result)
    -- unlike HDEL, this write is rejected by a full Redis
    call('HSET', g.key, result, '')
    call('HDEL', g.key, result)
  elseif e.turn ~= 0 and e.turn == g.turn then
    g.running = g.running - 1
  end
else
  if retry then return finish({'R', 'effect_not_found', 0}) end
  g = g or {key = KEYS[2], is_new = true, life = sub(m, LIFE_AT, LIFE_END), last = 0, oldest = 0, newest = 0, count = 0, open = 0,
    bytes = 0, generation = 0, turn = 0, running = 0}
  if g.open >= OPEN_EFFECTS_MAX or g.last == NUMBER_MAX then return finish({'R', 'too_many_effects', 0}) end
  -- makes room by removing the oldest settled effects whose last turn, or a later turn, is complete
  local gone, count, bytes, position = {}, g.count, g.bytes, g.oldest
  while count >= EFFECTS_MAX or bytes >= RESULTS_BYTES_MAX and #gone < REMOVED_MAX do
    if position == 0 then return finish({'R', 'too_many_effects', 0}) end
    local packed = call('HGET', g.key, effect_field('n', position))
    local _, _, used, state, generation = unpack_(SCANNED, packed, SCANNED_AT)
    if generation ~= g.generation then used = 0 end
    if state ~= 0 and math.max(used, 1) <= complete then
      gone[#gone + 1], count, bytes = position, count - 1, bytes - call('HSTRLEN', g.key, effect_field('r', position))
    end
    position = unpack_(POSITION, call('HGET', g.key, effect_field('a', position)))
  end
  if g.is_new then
    settle(g.key)
    -- fails if Redis is full, before the script has changed anything
    call('HSET', g.key, 'M', '')
    call('UNLINK', g.key)
  elseif #gone > 0 then
    call('HSET', g.key, 'M', call('HGET', g.key, 'M'))
  end
  for _, its_position in ipairs(gone) do remove_effect(g, its_position) end
  g.last = g.last + 1
  e = {position = g.last, before = g.newest, attempt = 0, key = ARGV[10], tail = ARGV[5] .. ARGV[4]}
  fields = {'e' .. ARGV[4], pack(POSITION, g.last), effect_field('a', g.last), pack(POSITION, 0)}
  if g.newest ~= 0 then
    fields[5], fields[6] = effect_field('a', g.newest), pack(POSITION, g.last)
  else
    g.oldest = g.last
  end
  g.newest, g.count, g.open = g.last, g.count + 1, g.open + 1
end
e.attempt, e.turn, e.used, e.begun, e.state = math.min(e.attempt + 1, NUMBER_MAX), number, number, now(ahead), 0
e.fence, e.request = ARGV[9], ARGV[8] ~= '' and ARGV[8] or NO_FENCE
if g.turn ~= number then g.turn, g.running = number, 0 end
g.running = g.running + 1
fields[#fields + 1], fields[#fields + 2] = field_of(g, e)
save_effects(g, unpack(fields))
if has_effects == 0 or sub(numbers, NUMBERED_AT) ~= sub(ARGV[3], 1, NUMBERED_BYTES) then
  call('HSET', key, 'N', pack(NUMBERS, number, complete, 1) .. sub(ARGV[3], 1, NUMBERED_BYTES))
end
return finish(effect_reply(g, e, 'g'))
