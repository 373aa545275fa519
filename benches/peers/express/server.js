// Stores a state per session, with express-session and connect-redis:
//
//     NODE_ENV=production node server.js PORT REDIS_URL

import { RedisStore } from 'connect-redis'
import express from 'express'
import session from 'express-session'
import { createClient } from 'redis'

const [port, url] = process.argv.slice(2)

const client = createClient({ url })
await client.connect()

const app = express()
app.use(
  session({
    store: new RedisStore({ client }),
    secret: 'a secret of the benchmark that is long enough',
    resave: false, // required: force lightweight session keep alive (touch)
    saveUninitialized: false, // recommended: only save session when data exists
  }),
)
// values can be of any type, and the initial state exceeds the default limit
app.use(express.json({ strict: false, limit: '2mb' }))

app.put('/state', (request, response) => {
  request.session.state = request.body
  response.json({ keys: Object.keys(request.body).length })
})

app.get('/state', (request, response) => {
  response.json(request.session.state ?? {})
})

app.patch('/state', (request, response) => {
  const state = (request.session.state ??= {})
  Object.assign(state, request.body)
  response.json({ keys: Object.keys(state).length })
})

app.post('/state/messages', (request, response) => {
  const state = (request.session.state ??= {})
  const messages = (state.messages ??= [])
  messages.push(request.body)
  state.messages = messages.slice(-Number(request.query.window))
  response.json({ length: state.messages.length })
})

app.listen(Number(port), '127.0.0.1')
