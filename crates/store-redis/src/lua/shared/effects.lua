-- The effects of a thread are one hash:
--   M      life; last position; positions of the oldest and the newest effect (0: none); number of effects, and of open ones
--          (running or in doubt); bytes of all results; generation; a turn, and how many open effects it has begun
--   eID    the position of the effect ID
--   nN     the effect at position N: its position, that of the effect before it (0: none), last attempt, turn of that
--          attempt, last turn that used the effect, time of the attempt, state, generation, fence, idempotency key, and
--          digest of the idempotency key of the request that began the attempt; then tool and hash of the arguments, each
--          after its length; then the ID
--   aN     the position of the effect after it (0: none)
--   rN     its result or error as JSON text, if it is settled
-- A fork copies the hash and increases its generation. The attempts of an earlier generation belong to turns of the source,
-- so they are never running, and their fences settle nothing.
local EFFECTS, EFFECTS_AT = '>I4I4I4I4I4I6I2I4I4', 9
local EFFECT, EFFECT_BYTES = '>I4I4I4I4I4I6BI2c16c16c16', 77
-- The part of an effect that a scan reads: the position before it, both turns, state, and generation.
local SCANNED, SCANNED_AT = '>I4xxxxI4I4xxxxxxBI2', 5
local POSITION = '>I4'
local IS_DONE, HAS_FAILED = 1, 2
-- A begin removes at most REMOVED_MAX effects to make room for results.
local EFFECTS_MAX, OPEN_EFFECTS_MAX, RESULTS_BYTES_MAX, REMOVED_MAX = 1000, 64, 4194304, 64
local NO_FENCE = '\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0'

-- Returns the effects of a thread with meta `m`, or nil if the hash is missing or remains from an earlier life.
local function effects_of(key, m)
  local packed = call('HGET', key, 'M')
  if not packed or sub(packed, 1, 8) ~= sub(m, LIFE_AT, LIFE_END) then return nil end
  local g = {key = key, life = sub(packed, 1, 8)}
  g.last, g.oldest, g.newest, g.count, g.open, g.bytes, g.generation, g.turn, g.running = unpack_(EFFECTS, packed, EFFECTS_AT)
  return g
end

-- Saves the meta of the effects, and other fields of the hash.
local function save_effects(g, ...)
  call('HSET', g.key, 'M', g.life .. pack(EFFECTS, g.last, g.oldest, g.newest, g.count, g.open, g.bytes, g.generation, g.turn, g.running), ...)
end

local function effect_field(kind, position) return kind .. fmt('%.0f', position) end

local function unpack_effect(g, packed)
  local e = {}
  e.position, e.before, e.attempt, e.turn, e.used, e.begun, e.state, e.generation, e.fence, e.key, e.request = unpack_(EFFECT, packed)
  e.tail = sub(packed, EFFECT_BYTES + 1)
  if e.generation ~= g.generation then e.turn, e.used, e.fence, e.request = 0, 0, NO_FENCE, NO_FENCE end
  return e
end

local function effect_of(g, id)
  local position = call('HGET', g.key, 'e' .. id)
  return position and unpack_effect(g, call('HGET', g.key, effect_field('n', (unpack_(POSITION, position)))))
end

-- Returns the id in a packed effect.
local function id_in(packed)
  local hash_at = EFFECT_BYTES + 2 + byte(packed, EFFECT_BYTES + 1)
  return sub(packed, hash_at + 1 + byte(packed, hash_at))
end

local function pack_effect(g, e)
  return pack(EFFECT, e.position, e.before, e.attempt, e.turn, e.used, e.begun, e.state, g.generation, e.fence, e.key, e.request) .. e.tail
end

-- Returns the name and the content of the field of an effect.
local function field_of(g, e) return effect_field('n', e.position), pack_effect(g, e) end

-- Returns whether the last attempt of an effect runs. `turn` is field U of the thread, and `number` the number of the last
-- turn. A turn that has only expired counts, because its holder may renew it.
local function is_running(e, turn, number)
  if e.state ~= 0 or not turn or e.turn ~= number then return false end
  local _, ends = unpack_(TURN, turn)
  return ends ~= 0
end

-- Returns the state of an effect as a letter.
local function letter_of(e, turn, number)
  return e.state == IS_DONE and 'd' or e.state == HAS_FAILED and 'f' or is_running(e, turn, number) and 'r' or 'i'
end

-- Returns the reply with an effect: `E`, its state as a letter, the packed effect, and its result or error.
local function effect_reply(g, e, letter)
  return {'E', letter, pack_effect(g, e), e.state ~= 0 and call('HGET', g.key, effect_field('r', e.position)) or ''}
end

-- Checks the request `s` to settle an effect: id, fence or empty, state, and result or error. `turn` and `numbers` are
-- fields U and N of the thread. `earlier` maps ids to what an earlier operation of the same write records. Returns a
-- refusal, or nil, the effect, and whether it was already settled with this value.
local function settlement_refusal(g, s, turn, numbers, token, ahead, earlier)
  local e = g and effect_of(g, s.id)
  if not e then return {'R', 'effect_not_found', 0} end
  if s.fence == '' then
    local refusal = holder_refusal(turn, numbers, token, ahead)
    if refusal then return refusal end
    if is_running(e, turn, (numbers_of(turn, numbers))) then return {'R', 'effect_lost', e.attempt} end
  elseif s.fence ~= e.fence or s.fence == NO_FENCE then
    return {'R', 'effect_lost', e.attempt}
  end
  local new, old = s.state .. s.text, earlier[s.id]
  if e.state ~= 0 then old = e.state .. call('HGET', g.key, effect_field('r', e.position)) end
  if old and old ~= new then return {'R', 'effect_settled', e.attempt} end
  return nil, e, old ~= nil
end

-- Settles an effect. `number` is the number of the thread's last turn.
local function settle_effect(g, e, s, number)
  e.state, e.used = tonumber(s.state), number
  g.open, g.bytes = g.open - 1, g.bytes + #s.text
  if e.turn ~= 0 and e.turn == g.turn then g.running = g.running - 1 end
  local name, packed = field_of(g, e)
  save_effects(g, name, packed, effect_field('r', e.position), s.text)
end

-- Copies the effects of the thread with meta `m` to a fork with another life. Returns whether there are any.
local function copy_effects(from, m, to, life)
  local g = effects_of(from, m)
  if not g then return false end
  call('COPY', from, to)
  g.key, g.life, g.generation, g.turn, g.running = to, life, g.generation + 1, 0, 0
  save_effects(g)
  return true
end
