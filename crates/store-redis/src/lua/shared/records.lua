-- Idempotency keys. The remembered answers of a thread are one hash:
--   R          numbers of the oldest answer and of the next answer, and the total cost of the answers
--   oN         time of answer N (6 bytes), its cost (4 bytes), and the digest of its idempotency key
--   <digest>   fingerprint of the request, and the answer as msgpack
-- The cost of an answer is the size of its metadata and removed elements, plus 8 bytes for each operation's result.
local REMEMBERED_MS, LONGEST_MS, NEWEST, ANSWERS_MAX, COST_MAX = 60000, 86400000, 64, 65536, 16777216

-- Returns the earlier answer of `kind`, marked as replayed, or a refusal. If there is neither, returns nil and, if the
-- request has an idempotency key, the argument for `remember`.
local function recall(key, idempotency, ahead, kind)
  if idempotency == '' then return nil end
  local digest, request = sub(idempotency, 1, 16), sub(idempotency, 17, 32)
  local memory = {key = key, digest = digest, request = request, first = 0, next = 0,
    cost = 0}
  local left = call('PTTL', key)
  memory.stale = left ~= -2 and left <= ahead
  if left == -2 or memory.stale then return nil, memory end
  memory.left = left
  local stored = call('HMGET', key, digest, 'R')
  if stored[1] then
    if sub(stored[1], 1, 16) ~= request then return {'R', 'idempotency_key_reused'} end
    local answer = cmsgpack.unpack(sub(stored[1], 17))
    if answer[1] ~= kind then return {'R', 'idempotency_key_reused'} end
    answer[2] = 1
    return answer
  end
  if stored[2] then memory.first, memory.next, memory.cost = unpack_('>I6I6I6', stored[2]) end
  if memory.next - memory.first >= ANSWERS_MAX or memory.cost >= COST_MAX then
    local expires = unpack_('>I6', call('HGET', key, 'o' .. fmt('%.0f', memory.first))) + REMEMBERED_MS
    if expires > now(ahead) then return {'R', 'too_many_idempotency_keys', expires - now(ahead)} end
  end
  return nil, memory
end

-- Remembers an answer. Drops answers that are older than a day. If at least NEWEST earlier answers are remembered, each
-- call also drops up to two answers that are older than a minute.
local function remember(memory, answer, cost, lives_ms, ahead)
  local key = memory.key
  if memory.stale then call('UNLINK', key) end
  for i = 1, NEWEST do
    local name = 'o' .. fmt('%.0f', memory.first)
    local oldest = call('HGET', key, name)
    if not oldest then break end
    local given_at, oldest_cost = unpack_('>I6I4', oldest)
    local is_needed = i > 2 or memory.next - memory.first < NEWEST
    if given_at + (is_needed and LONGEST_MS or REMEMBERED_MS) > now(ahead) then break end
    call('HDEL', key, name, sub(oldest, 11))
    memory.first, memory.cost = memory.first + 1, memory.cost - oldest_cost
  end
  call('HSET', key,
    memory.digest, memory.request .. cmsgpack.pack(answer),
    'o' .. fmt('%.0f', memory.next), pack('>I6I4', now(ahead), cost) .. memory.digest,
    'R', pack('>I6I6I6', memory.first, memory.next + 1, memory.cost + cost))
  local ttl = math.max(REMEMBERED_MS, math.min(lives_ms, LONGEST_MS)) + ahead
  if not memory.left or memory.left < ttl then call('PEXPIRE', key, ttl) end
end

-- Makes the remembered answers of an ended object expire after `after_ms`. Returns whether there are any answers.
local function forget_soon(key, after_ms, ahead)
  if call('PTTL', key) <= ahead then return false end
  call('PEXPIRE', key, after_ms + ahead)
  return true
end

-- Returns whether a thread with this version and life meets a precondition. Kind `O` has a list of tags of 15 bytes,
-- and at least one tag must match.
local function is_met(precondition, version, life)
  local kind = sub(precondition, 1, 1)
  if kind == '' then return true end
  if kind == 'E' then return version > 0 end
  if kind == 'O' then
    for at = 2, #precondition, 15 do
      if is_met(sub(precondition, at, at + 14), version, life) then return true end
    end
    return false
  end
  if kind == 'L' then return version > 0 and sub(precondition, 2) == life end
  if unpack_('>I6', precondition, 2) ~= version then return false end
  return kind == 'V' or sub(precondition, 8) == life
end
