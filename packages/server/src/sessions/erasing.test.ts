// Erasure over HTTP.
import { expect, test } from 'vitest'
import { json, rigs } from '../test.fixture.ts'

const start = rigs()
const replies = { always: { text: 'Hello there.' } }

test('X11: a session is erased by its user, and unknown afterwards', async () => {
  const { post, get, engine } = await start({ replies })
  await post('/api/chat', { sessionId: 's', message: 'Hi' })
  const erase = (path: string) => get(path, { method: 'DELETE' })
  expect((await erase('/api/sessions/s?userId=mallory')).status).toBe(404)
  expect(await json(erase('/api/sessions/s'))).toEqual({ sessions: 1, files: 0 })
  expect((await erase('/api/sessions/s')).status).toBe(404)
  expect((await get('/api/sessions/s/messages')).status).toBe(404)
  expect((await post('/api/chat', { sessionId: 's', message: 'Hi again' })).status).toBe(200)
  expect((await engine.session({ user: 'default', session: 's' }).state()).messages).toHaveLength(2)
})

test('X11: an administrator erases a user or a tenant, and has to say which', async () => {
  const { post, engine } = await start({ replies })
  for (const userId of ['ann', 'bob']) await post('/api/chat', { userId, sessionId: 's', message: 'Hi' })
  for (const body of [{}, { userId: 'ann', allUsers: true }, { allUsers: false }])
    expect((await post('/admin/api/erase', body)).status).toBe(400)
  expect(await engine.sessions({})).toHaveLength(2)
  expect(await json(post('/admin/api/erase', { userId: 'ann' }))).toEqual({ sessions: 1, files: 0 })
  expect((await engine.sessions({})).map(({ key }) => key.user)).toEqual(['bob'])
  expect(await json(post('/admin/api/erase', { allUsers: true }))).toEqual({ sessions: 1, files: 0 })
  const { records } = await engine.backend.journal.audit({})
  expect(records.map((it) => [it.event, it.key.user])).toEqual([
    ['data.erased', 'ann'],
    ['data.erased', '*'],
  ])
})
