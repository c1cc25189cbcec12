// The error code and the part to fix, by status, codes and words. The texts are the providers' own.
import { describe, expect, test } from 'vitest'
import { ask, askInVain, modelAt, serve, sse, text } from '../asking.fixture.ts'
import { guardModel, withFallbacks } from '../index.ts'

const refused = async (status: number, body: unknown, headers: Record<string, string> = {}) => {
  const options = { provider: 'acme', model: 'm1', keyVariable: 'ACME_API_KEY' }
  return (await askInVain(modelAt(await serve({ status, body, headers }), options))).error
}
const said = (message: string, code?: string) => ({ error: { message, ...(code !== undefined && { code }) } })

describe('B1: a conversation that is too long', () => {
  test.each([
    ['Bedrock', 400, said('Input Tokens Exceeded: Number of input tokens exceeds maximum length.')],
    ['Perplexity', 400, { error: { message: 'Bad request', type: 'too_many_prompt_tokens', code: 400 } }],
    ['a bare 413', 413, ''],
    ['nginx', 413, '<html><head><title>413 Request Entity Too Large</title></head></html>'],
    ['Ollama, as a server error', 500, said('input length exceeds maximum context length')],
  ])('is recognised: %s', async (_, status, body) => {
    expect(await refused(status, body)).toMatchObject({ code: 'context_overflow', retryable: false })
  })

  test('is not a single image that is too large, even with status 413', async () => {
    expect((await refused(413, said('image exceeds the maximum of 5 MB'))).code).toBe('invalid_request')
  })
})

describe('B1: codes and words name the cause, not the status alone', () => {
  test.each([
    [
      'an overdue account',
      403,
      said('Your account has an overdue balance.', 'AccountOverdueError'),
      'rate_limited',
      'account',
      /account at acme/,
    ],
    [
      'no credit left',
      400,
      said('Your credit balance is too low to access the Anthropic API.'),
      'rate_limited',
      'account',
      /plan and billing/,
    ],
    [
      'a blocked region',
      403,
      said('Country, region, or territory not supported', 'unsupported_country_region_territory'),
      'auth',
      'region',
      /country or region/,
    ],
    [
      'a blocked location',
      400,
      said('User location is not supported for the API use.'),
      'auth',
      'region',
      /country or region/,
    ],
    [
      'moderation',
      403,
      said('Your chosen model requires moderation and your input was flagged'),
      'invalid_request',
      'content',
      /blocked the request/,
    ],
    [
      'a proxy’s page',
      403,
      '<!DOCTYPE html><html><title>Access denied</title></html>',
      'provider_error',
      'proxy',
      /proxy or firewall/,
    ],
    ['a proxy that asks for a password', 407, '', 'provider_error', 'proxy', /proxy or firewall/],
    [
      'a wrong key with status 400',
      400,
      said('Incorrect API key provided: sk***9. Get one at console.x.ai.'),
      'auth',
      'key',
      /ACME_API_KEY.*\[key\]/,
    ],
    [
      'a wrong token of Bedrock',
      400,
      said('The security token included in the request is invalid.'),
      'auth',
      'key',
      /ACME_API_KEY/,
    ],
    [
      'a wrong model with status 400',
      400,
      said('The provided model identifier is invalid.'),
      'invalid_request',
      'model',
      /no model m1/,
    ],
    [
      'a model that does not exist',
      400,
      said('The model m1 does not exist or your team lacks access to it.'),
      'invalid_request',
      'model',
      /no model m1/,
    ],
    [
      'a model that the account may not use',
      403,
      said("You don't have access to the model with the specified model ID."),
      'auth',
      'model',
      /may not use m1/,
    ],
  ])('%s (HTTP %d)', async (_, status, body, code, at, message) => {
    const error = await refused(status, body)
    expect(error).toMatchObject({ code, retryable: false, details: { at } })
    expect(error.message).toMatch(message)
    // Operators read the provider's message; a web page has none.
    const words = (body as { error?: { message: string } }).error?.message.slice(0, 20)
    if (words !== undefined) expect(error.message).toContain(words)
  })

  test.each([
    ['no credit left', 400, said('Your credit balance is too low to access the Anthropic API.')],
    ['a blocked region', 403, said('Country, region, or territory not supported')],
    ['moderation', 403, said('Your input was flagged')],
    ['a proxy’s page', 403, '<html></html>'],
    ['a wrong key with status 400', 400, said('Incorrect API key provided')],
  ])('a fallback is tried after %s', async (_, status, body) => {
    const spare = modelAt(await serve({ text: 'here' }))
    const model = withFallbacks(modelAt(await serve({ status, body })), { fallbacks: [{ model: spare }] })
    expect(text((await ask(model)).reply)).toBe('here')
  })

  test('similar messages stay errors of the request', async () => {
    for (const message of ['max_tokens is too large', 'Unknown parameter: region', 'temperature must be below 2']) {
      expect(await refused(400, said(message))).toMatchObject({ code: 'invalid_request', details: { said: message } })
      expect((await refused(400, said(message))).details).not.toHaveProperty('at')
    }
  })
})

describe('B12: a tool call that the provider could not parse', () => {
  const failed = {
    error: {
      message: "Failed to call a function. See 'failed_generation'.",
      code: 'tool_use_failed',
      failed_generation: '<f',
    },
  }
  test.each([
    ['as a refusal', { status: 400, body: failed }],
    ['inside the stream', { raw: sse([failed], '') }],
  ])('is the model’s mistake, and is retried: %s', async (_, broken) => {
    const server = await serve(broken, { text: 'better' })
    expect(text((await ask(withFallbacks(modelAt(server), { retry: { baseMs: 1 } }))).reply)).toBe('better')
  })

  test('says nothing about whether the provider works', async () => {
    const server = await serve(...Array.from({ length: 8 }, () => ({ status: 400, body: failed })))
    const model = guardModel(modelAt(server))
    for (let i = 0; i < 8; i++) expect((await askInVain(model)).error.details).toMatchObject({ at: 'output' })
    expect(model.health().breaker).toBe('closed')
  })
})

describe('B1: how long to wait', () => {
  test.each([
    ['Please try again in 6.5s.', 6_500],
    ['Please try again in 1m26.4s. Visit us.', 86_400],
    ['Please try again in 857ms.', 857],
    ['Rate limit reached, retry after 20 seconds.', 20_000],
    ['Try again in 3 minutes', 120_000],
    ['Please try again in a while.', undefined],
  ])('is parsed from %j', async (message, ms) => {
    expect((await refused(429, said(message))).retryAfterMs).toBe(ms)
  })

  test('the header takes precedence over the message, and is in the error', async () => {
    const error = await refused(429, said('Please try again in 6.5s.'), { 'retry-after': '60' })
    expect(error.retryAfterMs).toBe(60_000)
    expect(error.message).toMatch(/^acme limits the rate of requests \(HTTP 429\)\. Wait 60 s and try again/)
  })
})
