import { describe, expect, test } from 'vitest'
import { anthropicAt, ask, askInVain, modelAt, responsesAt, serve } from '../asking.fixture.ts'

const refused = async (status: number, body: unknown = {}, headers: Record<string, string> = {}) => {
  const options = { provider: 'acme', keyVariable: 'ACME_API_KEY' }
  return (await askInVain(modelAt(await serve({ status, body, headers }), options))).error
}

test.each([
  [401, 'auth', false],
  [403, 'auth', false],
  [429, 'rate_limited', true],
  [400, 'invalid_request', false],
  [402, 'invalid_request', false],
  [404, 'invalid_request', false],
  [408, 'provider_error', true],
  [413, 'context_overflow', false],
  [422, 'invalid_request', false],
  [500, 'provider_error', true],
  [502, 'provider_error', true],
  [503, 'overloaded', true],
  [529, 'overloaded', true],
])('HTTP %d is %s', async (status, code, retryable) => {
  const error = await refused(status, { error: { message: 'some words' } })
  expect(error).toMatchObject({ code, retryable, status, partial: undefined })
  expect(error.message).toMatch(/^(The account at )?acme .*\(HTTP \d+\)|^The conversation/)
})

describe('a conversation that is too long', () => {
  test.each([
    [400, { error: { code: 'context_length_exceeded', message: 'Please shorten' } }],
    [400, { error: { message: "This model's maximum context length is 8192 tokens. However, you requested 9000" } }],
    [400, { error: { message: 'prompt is too long: 200001 tokens > 200000 maximum' } }],
    [400, { error: { message: 'input length and `max_tokens` exceed context limit: 190000 + 21333 > 200000' } }],
    [400, { message: 'Range of input length should be [1, 30720]', code: 'InvalidParameter' }],
    [400, { error: { message: 'Invalid request: Your request exceeded model token limit: 8192' } }],
    [
      400,
      { error: { message: "This model's maximum prompt length is 131072 but the request contains 140000 tokens." } },
    ],
    [400, { error: { message: 'Please reduce the length of the messages or completion.' } }],
    [400, { error: { message: 'The request exceeds the available context size', type: 'exceed_context_size_error' } }],
    [400, { error: { message: 'Total tokens of image and text exceed max message tokens' } }],
    [400, { error: { code: '1261', message: 'Prompt exceeds max length' } }],
    [413, { error: { message: 'Request too large: the prompt is longer than the context window' } }],
    [422, { message: 'Prompt contains 40000 tokens, too large for model with 32768 maximum context length' }],
    [400, 'context window exceeds limit (2013)'],
  ])('%d %j is a context_overflow', async (status, body) => {
    expect(await refused(status, body)).toMatchObject({ code: 'context_overflow', retryable: false, status })
  })

  test.each([
    { error: { message: 'max_tokens is too large: 99999. This model supports at most 16384 completion tokens.' } },
    { error: { message: 'Invalid type for messages[0].content' } },
    { error: { message: 'Tool name length must not exceed 64' } },
  ])('%j is not', async (body) => {
    expect((await refused(400, body)).code).toBe('invalid_request')
  })
})

describe('errors of Anthropic', () => {
  const said = (type: string, message: string) => ({ type: 'error', error: { type, message }, request_id: 'req_1' })
  test.each([
    [
      400,
      said('invalid_request_error', 'prompt is too long: 208310 tokens > 200000 maximum'),
      'context_overflow',
      false,
    ],
    [
      400,
      said('invalid_request_error', 'input length and `max_tokens` exceed context limit: 1 + 2 > 3'),
      'context_overflow',
      false,
    ],
    [
      400,
      said('invalid_request_error', 'max_tokens: 99999 > 64000, which is the maximum allowed number of output tokens'),
      'invalid_request',
      false,
    ],
    [
      400,
      said('invalid_request_error', 'messages.1.content.0: Invalid `signature` in `thinking` block'),
      'invalid_request',
      false,
    ],
    [401, said('authentication_error', 'invalid x-api-key'), 'auth', false],
    [403, said('permission_error', 'not allowed'), 'auth', false],
    [404, said('not_found_error', 'model: claude-x'), 'invalid_request', false],
    [413, said('request_too_large', 'Request exceeds the maximum size'), 'context_overflow', false],
    [429, said('rate_limit_error', 'would exceed the rate limit'), 'rate_limited', true],
    [500, said('api_error', 'Internal server error'), 'provider_error', true],
    [504, said('timeout_error', 'Request timed out'), 'provider_error', true],
    [529, said('overloaded_error', 'Overloaded'), 'overloaded', true],
  ])('%d %j is %s', async (status, body, code, retryable) => {
    const server = await serve({ status, body, headers: { 'retry-after': '7' } })
    const { error } = await askInVain(anthropicAt(server))
    expect(error).toMatchObject({ code, retryable, status, retryAfterMs: 7_000, details: { requestId: 'req_1' } })
  })
})

describe('errors of OpenAI’s responses, and of Azure', () => {
  const said = (code: string, message: string) => ({ error: { code, message, type: null, param: null } })
  const tooLong = 'Your input exceeds the context window of this model. Please adjust your input and try again.'
  test.each([
    [400, said('context_length_exceeded', tooLong), 'context_overflow', false],
    [
      400,
      said('invalid_value', 'Item of type reasoning was provided without its required following item.'),
      'invalid_request',
      false,
    ],
    [400, said('content_filter', 'The response was filtered'), 'invalid_request', false],
    [401, said('invalid_api_key', 'Incorrect API key provided'), 'auth', false],
    [401, { error: { code: '401', message: 'Access denied due to invalid subscription key' } }, 'auth', false],
    [404, said('model_not_found', 'The model does not exist'), 'invalid_request', false],
    [404, said('DeploymentNotFound', 'The API deployment for this resource does not exist.'), 'invalid_request', false],
    [429, said('rate_limit_exceeded', 'Rate limit reached for gpt-5'), 'rate_limited', true],
    [429, said('insufficient_quota', 'You exceeded your current quota'), 'rate_limited', false],
    [500, said('server_error', 'The server had an error'), 'provider_error', true],
    [503, said('server_is_overloaded', 'Our servers are currently overloaded.'), 'overloaded', true],
  ])('%d %j is %s', async (status, body, code, retryable) => {
    const server = await serve({ status, body, headers: { 'retry-after-ms': '250', 'x-request-id': 'req_1' } })
    const { error } = await askInVain(responsesAt(server))
    expect(error).toMatchObject({ code, retryable, status, retryAfterMs: 250, details: { requestId: 'req_1' } })
  })

  test.each([
    ['context_length_exceeded', tooLong, 'context_overflow', false],
    ['rate_limit_exceeded', 'Rate limit reached', 'rate_limited', true],
    ['insufficient_quota', 'You exceeded your current quota', 'rate_limited', false],
    ['server_is_overloaded', 'Our servers are busy', 'overloaded', true],
    ['server_error', 'An error occurred', 'provider_error', true],
  ])('%s in the stream is %s', async (code, message, expected, retryable) => {
    const event = { type: 'response.failed', response: { status: 'failed', error: { code, message } } }
    const { error } = await askInVain(responsesAt(await serve({ raw: `data: ${JSON.stringify(event)}\n\n` })))
    expect(error).toMatchObject({ code: expected, retryable })
  })
})

describe('Retry-After', () => {
  const after = async (headers: Record<string, string>) => (await refused(429, {}, headers)).retryAfterMs

  test('seconds, fractions of a second and milliseconds are parsed', async () => {
    expect(await after({ 'retry-after': '7' })).toBe(7_000)
    expect(await after({ 'retry-after': ' 0.5 ' })).toBe(500)
    expect(await after({ 'retry-after': '7', 'retry-after-ms': '250' })).toBe(250)
  })

  test('an HTTP date is parsed', async () => {
    const ms = await after({ 'retry-after': new Date(Date.now() + 30_000).toUTCString() })
    expect(ms).toBeGreaterThan(25_000)
    expect(ms).toBeLessThanOrEqual(30_000)
    expect(await after({ 'retry-after': 'Wed, 21 Oct 2015 07:28:00 GMT' })).toBe(0)
  })

  test('the delay is at most two minutes', async () => {
    expect(await after({ 'retry-after': '86400' })).toBe(120_000)
  })

  test.each(['soon', '-5', '', 'abc 1', 'NaN', '1e9', 'Wed, 99 Foo 2015 07:28:00 GMT'])(
    '%j is ignored',
    async (value) => {
      expect(await after({ 'retry-after': value })).toBeUndefined()
    },
  )

  test('a 503 may carry it as well', async () => {
    expect((await refused(503, {}, { 'retry-after': '3' })).retryAfterMs).toBe(3_000)
  })
})

test('an account without quota is rate_limited, but waiting does not help', async () => {
  const error = await refused(429, {
    error: { code: 'insufficient_quota', message: 'You exceeded your current quota' },
  })
  expect(error).toMatchObject({ code: 'rate_limited', retryable: false, message: expect.stringContaining('billing') })
})

describe('the message', () => {
  test('names the variable of a refused key, never the key', async () => {
    const error = await refused(401, { error: { message: 'Incorrect API key provided: sk-secret' } })
    expect(error.message).toBe(
      'acme refused the API key (HTTP 401). Check ACME_API_KEY and that it may use any. ' +
        'Provider message: Incorrect API key provided: [key]',
    )
    expect(JSON.stringify(error.details)).not.toContain('sk-secret')
  })

  test('holds the provider’s message, without the key, for an error of the request', async () => {
    const error = await refused(400, { error: { message: 'no such field: sk-secret' } })
    expect(error.message).toMatch(
      /^acme refused the request \(HTTP 400\)\..* Provider message: no such field: \[key\]$/,
    )
  })

  test.each([
    ['as it is', 'x-api-key', 'header-secret', 'header-secret'],
    ['without its scheme', 'authorization', 'Token header-secret', 'header-secret'],
    ['escaped in JSON', 'x-api-key', 'header-"secret"', 'header-"secret"'],
    ['one within the other', 'x-api-key', 'sk-secret-header', 'sk-secret-header'],
  ])('omits the value of a configured header that is echoed %s', async (_, header, value, echo) => {
    const replies = [
      {
        status: 400,
        body: { error: { message: `no such key: ${echo}` } },
        headers: { 'x-request-id': 'header-secret' },
      },
      { raw: `data: ${JSON.stringify({ error: { message: `no such key: ${echo}` } })}\n\n` },
      { raw: `data: {"broken": ${JSON.stringify(echo)}\n\n` },
    ]
    const model = modelAt(await serve(...replies), { headers: { [header]: value, 'x-second': 'header-secret' } })
    for (const _reply of replies) {
      const { error } = await askInVain(model)
      expect(JSON.stringify([error.message, error.details])).toContain('[key]')
      expect(JSON.stringify([error.message, error.details, String(error.stack)])).not.toMatch(/secret|header/)
    }
  })

  test('never shows a web page, which is clipped in the details', async () => {
    const error = await refused(502, `<html>${'x'.repeat(10_000)}</html>`)
    expect(error.message).toBe('acme failed (HTTP 502). Try again.')
    expect(String(error.details?.body)).toMatch(/^<html>x+…$/)
    expect(String(error.details?.body).length).toBeLessThan(2_100)
  })

  test('clips long provider messages', async () => {
    expect((await refused(400, { error: { message: 'w'.repeat(5_000) } })).message.length).toBeLessThan(500)
  })

  test('has the request id in the details, from a header or the body', async () => {
    expect((await refused(500, {}, { 'x-request-id': 'r1' })).details).toMatchObject({ requestId: 'r1' })
    expect((await refused(500, { request_id: 'r2', message: 'no' })).details).toMatchObject({ requestId: 'r2' })
  })

  test('names what to check for an unknown model', async () => {
    const error = await refused(404, { error: { message: 'model not found' } })
    expect(error.message).toMatch(
      /acme has no model any at http:\/\/127\.0\.0\.1:\d+\/v1 \(HTTP 404\)\. Check the model's name/,
    )
  })
})

describe('a redirect', () => {
  const redirected = async (status: number, location: string | undefined) => {
    const headers: Record<string, string> = location === undefined ? {} : { location }
    const from = await serve({ status, body: {}, headers })
    return (await askInVain(modelAt(from, { headers: { 'x-api-key': 'header-secret' } }))).error
  }

  test.each([301, 302, 303, 307, 308])('of status %d is not followed, and its target is reported', async (status) => {
    const elsewhere = await serve({ text: 'stolen' })
    const error = await redirected(status, `${elsewhere.url}/chat/completions?token=abc#d`)
    expect(error).toMatchObject({ code: 'invalid_request', retryable: false })
    expect(error.message).toMatch(/^test redirects http:\/\/127\.0\.0\.1:\d+\/v1 to http:\/\/127\.0\.0\.1:\d+\/v1\. /)
    expect(error.message).toContain(elsewhere.url)
    expect(elsewhere.requests).toHaveLength(0)
  })

  test.each([
    ['/v2/chat/completions', /\/v1 to http:\/\/127\.0\.0\.1:\d+\/v2\. /],
    ['https://user:sk-secret@example.com/a?key=sk-secret', /to https:\/\/example\.com\/a\. /],
    ['http://[', /elsewhere/],
    [undefined, /elsewhere/],
  ])('to %j is reported as far as it is a URL', async (location, message) => {
    const error = await redirected(308, location)
    expect(error.message).toMatch(message)
    expect(error.message).not.toMatch(/secret/)
  })
})

test('a refused connection is a retryable provider_error', async () => {
  const server = await serve()
  await server.close()
  const { error } = await askInVain(modelAt(server))
  expect(error).toMatchObject({ code: 'provider_error', retryable: true })
  expect(error.message).toMatch(/^Could not reach test at http:\/\/127\.0\.0\.1:\d+\/v1 \(ECONNREFUSED\)\. Check/)
})

test('a failed call leaves the model usable', async () => {
  const model = modelAt(await serve({ status: 500 }, { text: 'fine' }))
  await askInVain(model)
  expect((await ask(model)).reply.blocks).toEqual([{ type: 'text', text: 'fine' }])
})
