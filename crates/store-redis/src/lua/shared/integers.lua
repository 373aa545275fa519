-- splits a decimal string of up to 19 digits into signed limbs of 7 digits, lowest first
local function limbs(s)
  local negative = sub(s, 1, 1) == '-'
  if negative then s = sub(s, 2) end
  s = string.rep('0', 21 - #s) .. s
  local sign = negative and -1 or 1
  return sign * tonumber(sub(s, 15, 21)), sign * tonumber(sub(s, 8, 14)), sign * tonumber(sub(s, 1, 7))
end

local function is_past_64_bits(s)
  local negative = sub(s, 1, 1) == '-'
  if negative then s = sub(s, 2) end
  return #s > 19 or #s == 19 and s > (negative and '9223372036854775808' or '9223372036854775807')
end

-- numbers with more than 15 digits are added in limbs, because Lua numbers are doubles
local function add(x, y)
  if #x < 16 and #y < 16 then return fmt('%.0f', tonumber(x) + tonumber(y)) end
  local a0, a1, a2 = limbs(x)
  local b0, b1, b2 = limbs(y)
  local c0, c1, c2 = a0 + b0, a1 + b1, a2 + b2
  local negative = c2 < 0 or c2 == 0 and (c1 < 0 or c1 == 0 and c0 < 0)
  -- subtracts from 0, because negating 0 yields -0, which prints with its sign
  if negative then c0, c1, c2 = 0 - c0, 0 - c1, 0 - c2 end
  if c0 < 0 then c0, c1 = c0 + 10000000, c1 - 1 elseif c0 >= 10000000 then c0, c1 = c0 - 10000000, c1 + 1 end
  if c1 < 0 then c1, c2 = c1 + 10000000, c2 - 1 elseif c1 >= 10000000 then c1, c2 = c1 - 10000000, c2 + 1 end
  local s = string.gsub(fmt('%.0f%07.0f%07.0f', c2, c1, c0), '^0+', '')
  if s == '' then return '0' end
  return negative and '-' .. s or s
end
