-- Parts that are inserted into set.lua and push.lua. Each iteration of the loop in these scripts performs one write,
-- and stores its result in `outcome`. The last part is also inserted into append_events.lua. The body of the loop is
-- not a function, because each function and each upvalue costs time in every call of a script. An error of a command is
-- an outcome too. Commands therefore run through `try` until one of them has shown that the key is a hash. Missing
-- fields are detected before use.
--+ open
    local key, policy, f, v = KEYS[i], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]
    local m, owner = try('HGET', key, 'M'), ''
    if not m then break end
    if type(m) == 'table' then outcome = m break end
    if #m < META_BYTES then outcome = {err = 'ERR threadkeep: a broken meta'} break end
    if byte(m) % 2 == 0 or byte(m) > 3 then break end
    if #m > META_BYTES or #policy > POLICY_BYTES then
      owner = sub(m, META_BYTES + 1)
      local access = sub(policy, POLICY_BYTES + 1)
      if access ~= owner and access ~= '' and (access ~= '-' or owner ~= '') then break end
    end
    local ahead, max_bytes, max_keys = unpack_('>I6xxxxxxxxxxxI4I4', policy)
    local version, bytes, keys, created, written, ttl, ends, grace, watched = unpack_(FAST_META, m, FAST_META_AT)
    local left, kept = call('PTTL', key), grace * 1000 + ahead
    if left <= kept then break end
    if clock then
      -- an earlier write of this call has read the clock
    elseif redis.REDIS_VERSION_NUM then
      -- calculates the time on Redis 7, because PEXPIRETIME takes half the time of the command TIME
      clock = call('PEXPIRETIME', key) - left
    else
      local t = call('TIME')
      clock = t[1] * 1000 + math.floor(t[2] / 1000)
    end
    local time = clock + ahead
    if watched > time then break end
    local lives = ends == 0 and ttl or math.min(ttl, ends - time)
    if lives <= 0 then break end
    local before = bytes
--+ check
    if bytes + 1 > max_bytes then
      outcome = {'R', 'state_too_large', bytes + 1, before == 0 and 2 or before + 1}
      break
    end
    if keys > max_keys then outcome = {'R', 'too_many_keys'} break end
    -- first, because a failure here changes nothing; inlined from `move_owned`
    if owner ~= '' then
      local since = time - (written - written % SPAN_MS)
      if since < 0 or since >= SPAN_MS then
        local from = find(key, '}:t:', 1, true)
        local moved = try('ZADD', sub(key, 1, from) .. ':o:' .. owner, time, sub(key, from + 4))
        if type(moved) == 'table' then outcome = moved break end
      end
    end
    m = pack('>c9I6I4I4I6I6', m, version + 1, bytes, keys, created, time) .. sub(m, REST_AT)
--+ end
    lives = lives + kept
    if ttl < TTL_MS_MIN or left <= lives - MOVE_MS_MIN or left > lives then call('PEXPIRE', key, lives) end
--+ outcome
  -- Redis 6.2 adds the line number in the script to its error messages, so this prefix is removed
  if type(outcome) == 'table' and outcome.err then
    outcome = {err = string.gsub(outcome.err, '^@user_script: %d+: %-', '')}
  end
  outcomes[i] = outcome
