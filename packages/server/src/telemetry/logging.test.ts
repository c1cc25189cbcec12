import { OxbowError, tool } from '@oxbow/core'
import type { Reply } from '@oxbow/testing'
import { describe, expect, test } from 'vitest'
import { createApiKey } from '../identity/api-keys/api-key.ts'
import { createLogger, type LogOptions } from '../index.ts'
import { rigs, runInput } from '../test.fixture.ts'
import { redactor } from './redactor.ts'

const start = rigs()

function lines(options: Partial<LogOptions>, environment: Record<string, string> = {}) {
  const written: string[] = []
  const log = createLogger({
    level: 'info',
    format: 'json',
    destination: { write: (line) => written.push(line) },
    environment,
    ...options,
  })
  return { log, text: () => written.join('') }
}

describe('secrets', () => {
  test.each<[string, object]>([
    ['authorization headers', { headers: { authorization: 'Bearer abc-secret-xyz' } }],
    ['cookies at any depth', { a: { b: { c: { 'set-cookie': 'sid=abc-secret-xyz' } } } }],
    [
      'API keys under usual names',
      { apiKey: 'abc-secret-xyz', x_api_key: 'abc-secret-xyz', 'api-key': 'abc-secret-xyz' },
    ],
    [
      'tokens and passwords',
      { accessToken: 'abc-secret-xyz', password: 'abc-"secret-xyz', client_secret: 'abc-secret-xyz' },
    ],
    ['bearer tokens in texts', { note: 'sent Bearer abc-secret-xyz to it' }],
    ['lists of raw headers', { rawHeaders: ['authorization', 'Bearer abc-secret-xyz'] }],
    ['fields of JSON in a text', { body: '{"user": "ann", "password": "abc\\"secret-xyz", "n": 1}' }],
    ['fields of JSON in JSON in a text', { body: JSON.stringify({ inner: '{"token":"abc-\\"secret-xyz"}' }) }],
    ['bearer tokens in addresses', { path: '/callback/Bearer%20abc-secret-xyz' }],
    ['API keys of this service', { path: '/api/sessions/oxb_0123456789ab_abc-secret-xyz/stream' }],
    ['API keys of this service, as an address may write them', { path: '/x/oxb%5f0123456789ab%5Fabc-secret-xyz' }],
    ['signed tokens', { path: `/x/eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.abc-secret-xyz` }],
    ['keys of providers', { note: 'refused sk-proj-0123456789abcdef-secret-xyz here' }],
  ])('%s are redacted', (_what, fields) => {
    const { log, text } = lines({})
    log.info(fields, 'request')
    expect(text()).not.toContain('secret-xyz')
    expect(JSON.parse(text())).toMatchObject({ msg: 'request' })
  })

  test('values of secret environment variables are redacted everywhere', () => {
    const { log, text } = lines({}, { OPENAI_API_KEY: 'sk-live-"quoted"-12345', HOME: '/home/somebody' })
    log.error({ err: new Error('refused sk-live-"quoted"-12345') }, 'in /home/somebody')
    log.error({ body: JSON.stringify({ said: 'refused sk-live-"quoted"-12345' }) }, 'in JSON')
    log.error({ path: `/x/${encodeURIComponent('sk-live-"quoted"-12345')}` }, 'in an address')
    expect(text()).not.toContain('12345')
    expect(text()).toContain('/home/somebody')
    for (const line of text().trim().split('\n')) JSON.parse(line)
  })

  test('numbers and ids are kept', () => {
    const { log, text } = lines({})
    log.info({ inputTokens: 12, turnId: 't', sessionId: 's' }, 'turn')
    expect(JSON.parse(text())).toMatchObject({ inputTokens: 12, turnId: 't', sessionId: 's' })
  })
})

test('an error is logged with its code, details, stack and cause, but without the interrupted answer', async () => {
  const { post, logged } = await start({ replies: { always: { text: 'PRIVATE words', cutAfterChunks: 1 } } })
  await post('/api/chat', { message: 'Hi' })
  const { err } = logged.find((it) => it.msg === 'engine error') as { err: Record<string, unknown> }
  expect(err).toMatchObject({
    type: 'ModelError',
    code: 'stream_cut',
    stack: expect.stringContaining('at '),
    cause: { message: 'aborted' },
  })
  expect(JSON.stringify(logged)).not.toContain('PRIVATE')
})

describe('text that an error quotes', () => {
  const cases: [string, Reply][] = [
    ['a provider’s refusal', { status: 400, body: { error: { message: 'cannot read PRIVATE words' } } }],
    ['a provider’s error page', { status: 502, body: '<html>PRIVATE' }],
    ['an error within the stream', { error: { message: 'cannot read PRIVATE words' } }],
    ['a broken frame', { raw: 'data: {"choices":[{"delta":{"content":"PRIVATE\n\n' }],
    ['an invalid document', { raw: '{"choices":"PRIVATE"}' }],
  ]
  test.each(cases)('%s is logged at level debug only', async (_, reply) => {
    const logs = async (level: string) => {
      const { post, logged } = await start({ replies: { always: reply }, overrides: { 'log.level': level } })
      await post('/api/chat', { message: 'Hi' })
      return logged
    }
    const quiet = await logs('info')
    expect(quiet.find((it) => it.msg === 'engine error')).toMatchObject({
      err: { type: 'ModelError', message: expect.stringMatching(/scripted/), stack: expect.stringContaining('at ') },
    })
    expect(JSON.stringify(quiet)).not.toContain('PRIVATE')
    expect(JSON.stringify(await logs('debug'))).toContain('PRIVATE')
  })

  test('neither text that is not JSON nor details of unknown kind are logged', () => {
    const { log, text } = lines({})
    let cause: unknown
    try {
      JSON.parse('PRIVATE text')
    } catch (error) {
      cause = error
    }
    const details = { path: '/data/oxbow.db', input: 'PRIVATE text' }
    log.error({ err: new OxbowError('journal_corrupt', 'event 3 is not JSON', { cause, details }) }, 'failed')
    expect(JSON.parse(text())).toMatchObject({
      err: { message: 'event 3 is not JSON', details: { path: details.path } },
    })
    expect(text()).not.toContain('PRIVATE')
  })
})

test('pretty lines have the time, the level, the fields and the stack', () => {
  const { log, text } = lines({ format: 'pretty' })
  log.warn({ status: 500, route: '/x', err: new Error('it broke') }, 'request')
  expect(text()).toMatch(/^\d\d:\d\d:\d\d\.\d{3} .*WARN.* request status=500 route=\/x\nError: it broke\n {4}at /)
})

test('Y16: turns, steps, model calls and tool calls are timed, without their content', async () => {
  const look = tool({
    name: 'look',
    description: 'Looks.',
    effects: ['read'],
    input: { type: 'object', properties: { at: { type: 'string' } } },
    run: () => 'PRIVATE result',
  })
  const { post, logged } = await start({
    agent: { tools: [look] },
    replies: [
      {
        text: 'PRIVATE text',
        thinking: 'PRIVATE thought',
        calls: [{ name: 'look', arguments: { at: 'PRIVATE argument' } }],
      },
      { text: 'PRIVATE answer' },
    ],
  })
  await (await post('/api/chat/stream', runInput('PRIVATE question'))).text()
  const timed = logged.filter((it) => typeof it.ms === 'number').map((it) => it.msg)
  expect(timed.toSorted()).toEqual(['model call', 'model call', 'request', 'step', 'step', 'tool call', 'turn'])
  expect(logged.find((it) => it.msg === 'tool call')).toMatchObject({
    tool: 'look',
    status: 'success',
    turnId: 'run-1',
    step: 1,
  })
  expect(logged.find((it) => it.msg === 'model call')).toMatchObject({
    model: 'any',
    finishReason: 'calls',
    inputTokens: 10,
  })
  expect(JSON.stringify(logged)).not.toContain('PRIVATE')
})

test('a line of any form is redacted in linear time, and is otherwise unchanged', () => {
  const redact = redactor({})
  for (const piece of [
    '\\\\"token\\\\":\\\\"',
    '"token":"',
    '\\\\\\\\',
    'oxb_0123456789ab_',
    'eyJ',
    'Bearer ',
    'sk-',
    '"tokentoken',
  ]) {
    const began = performance.now()
    redact(piece.repeat(20_000))
    expect(performance.now() - began).toBeLessThan(2_000)
  }
  const line = JSON.stringify({ body: JSON.stringify({ token: 'abc', left: 'as it is' }), also: 'this' })
  expect(JSON.parse(redact(line))).toEqual({
    body: JSON.stringify({ token: '[redacted]', left: 'as it is' }),
    also: 'this',
  })
})

test('an API key in a URL is redacted, except for its id', async () => {
  const { get, logged } = await start()
  const { key, id } = createApiKey({ user: 'ann' })
  await get(`/api/sessions/${key}/nothing`)
  const line = logged.find((it) => it.msg === 'request')
  expect(line?.path).toBe(`/api/sessions/oxb_${id}_[redacted]/nothing`)
})

test('the line of a refused request has the code of the error', async () => {
  const { post, get, logged } = await start()
  await post('/api/chat', { message: ' ' })
  await get('/nothing')
  const requests = logged.filter((it) => it.msg === 'request')
  expect(requests.map((it) => [it.status, it.code])).toEqual([
    [400, 'invalid_request'],
    [404, 'not_found'],
  ])
})
