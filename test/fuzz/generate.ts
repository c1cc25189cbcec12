// Requests from the service's own OpenAPI document: valid ones, nearly valid ones, and what somebody with bad
// intentions sends.
import { gzipSync } from 'node:zlib'
import fc from 'fast-check'
import type { RawRequest } from './client.ts'
import type { Person, Target } from './service.ts'

export type JsonSchema = Readonly<Record<string, unknown>>

export interface Operation {
  readonly method: string
  readonly path: string
  readonly operationId: string
  readonly parameters?: readonly {
    readonly name: string
    readonly in: 'path' | 'query' | 'header'
    readonly required: boolean
    readonly schema: JsonSchema
  }[]
  readonly requestBody?: { readonly content: { readonly 'application/json': { readonly schema: JsonSchema } } }
  readonly responses: Readonly<
    Record<string, { readonly content: Readonly<Record<string, { readonly schema: JsonSchema }>> }>
  >
}

export interface FuzzRequest extends RawRequest {
  readonly operation: Operation
  readonly caller: Person | 'wrong' | 'nobody'
}

const METHODS = [
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'TRACE',
  'PROPFIND',
  'QUERY',
  'BREW',
  'get',
]

// biome-ignore-start format: one idea per word
/** Texts that have broken something somewhere. None of them holds what an answer must not hold. */
const NASTY = [
  '',
  ' ',
  '\0',
  'a\0b',
  '..',
  '../../etc/passwd',
  '%2e%2e%2f',
  '__proto__',
  'constructor',
  'toString',
  'a'.repeat(65),
  'x'.repeat(20_000),
  '😀',
  '\ud800',
  'é'.normalize('NFD'),
  '\u202e',
  '\u2028',
  "'; --",
  '"',
  '\\',
  '\r\nx-injected: 1',
  '-1',
  '1e999',
  'NaN',
  '0x10',
  '9007199254740993',
  '-0',
  'null',
  'true',
  '[]',
  '{}',
  '<b>',
  '{{7*7}}',
  ':',
  'a:b:c',
  'bm90aGluZw',
  Buffer.from('["default","bob","asks-bob","x"]').toString('base64url'),
  Buffer.from('[[],{},null,1]').toString('base64url'),
  Buffer.from('a\0b').toString('base64url'),
]
// biome-ignore-end format: one idea per word

const nastyText = fc.oneof(fc.constantFrom(...NASTY), fc.string({ unit: 'binary', maxLength: 30 }))
const anyJson: fc.Arbitrary<unknown> = fc.oneof(
  nastyText,
  fc.constantFrom<unknown>(null, true, -1, 0, 1.5, 1e308, -2_147_483_649, 2 ** 53, [], {}, [[]], { a: { b: [{}] } }),
  fc.jsonValue({ maxDepth: 3 }),
)

/** A value that the schema accepts, as far as the schema says. */
function valid(schema: JsonSchema, name: string, ids: Target['ids']): fc.Arbitrary<unknown> {
  const known = ids[name]
  const choices = (schema.anyOf ?? schema.oneOf) as JsonSchema[] | undefined
  if (known !== undefined && known.length > 0 && schema.type !== 'array')
    return fc.oneof({ weight: 8, arbitrary: fc.constantFrom(...known) }, byType(schema, name, ids))
  return choices === undefined ? byType(schema, name, ids) : fc.oneof(...choices.map((it) => valid(it, name, ids)))
}

function byType(schema: JsonSchema, name: string, ids: Target['ids']): fc.Arbitrary<unknown> {
  if (schema.const !== undefined) return fc.constant(schema.const)
  if (Array.isArray(schema.enum)) return fc.constantFrom(...schema.enum)
  switch (schema.type) {
    case 'string':
      return typeof schema.pattern === 'string' || schema.format !== undefined
        ? fc.constantFrom('a', 'A-b_c.d', '2026-01-31T09:00:00Z', 'x'.repeat(64))
        : fc.string({ minLength: Math.max(1, Number(schema.minLength ?? 0)), maxLength: 20 })
    case 'integer':
    case 'number': {
      const min = Number(schema.minimum ?? 0)
      return fc.integer({ min, max: Math.min(min + 1_000, Number(schema.maximum ?? 1_000)) })
    }
    case 'boolean':
      return fc.boolean()
    case 'array':
      return fc.array(valid((schema.items ?? {}) as JsonSchema, name, ids), { minLength: 1, maxLength: 3 })
    case 'object': {
      const fields = Object.entries((schema.properties ?? {}) as Record<string, JsonSchema>)
      const required = (schema.required ?? []) as string[]
      const record = fc.record(Object.fromEntries(fields.map(([key, it]) => [key, valid(it, key, ids)])), {
        requiredKeys: required,
      })
      return fields.length > 0
        ? record
        : fc.dictionary(fc.string({ minLength: 1, maxLength: 5 }), fc.jsonValue({ maxDepth: 1 }))
    }
    case 'null':
      return fc.constant(null)
    default:
      return fc.jsonValue({ maxDepth: 1 })
  }
}

/** A valid value with one thing in it changed. */
const nearly = (value: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc
    .tuple(value, fc.nat(20), fc.constantFrom('drop', 'set', 'add'), anyJson, nastyText)
    .map(([it, at, how, other, key]) => {
      const copy = structuredClone(it)
      const places = placesIn(copy)
      if (places.length === 0) return other
      const [holder, field] = places[at % places.length]!
      if (how === 'drop') Reflect.deleteProperty(holder, field)
      else
        Object.defineProperty(holder, how === 'set' ? field : key, {
          value: other,
          enumerable: true,
          configurable: true,
        })
      return copy
    })

function placesIn(value: unknown): [object, string][] {
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, it]): [object, string][] => [[value, key], ...placesIn(it)])
}

/** What stands for a body on the wire. */
function bodies(
  operation: Operation,
  ids: Target['ids'],
): fc.Arbitrary<{ bytes: Buffer; type?: string; encoding?: string }> {
  const schema = operation.requestBody?.content['application/json'].schema
  const type = 'application/json'
  const good = schema === undefined ? anyJson : valid(schema, '', ids)
  const json = (it: unknown) => ({ bytes: Buffer.from(JSON.stringify(it) ?? ''), type })
  const broken = good.chain((it) => {
    const text = JSON.stringify(it) ?? ''
    return fc.oneof(
      fc.nat(text.length).map((length) => ({ bytes: Buffer.from(text.slice(0, length)), type })),
      fc.constant({ bytes: gzipSync(text), type, encoding: 'gzip' }),
      fc.constant({ bytes: gzipSync(text), type }),
      fc
        .constantFrom(
          'text/plain',
          'application/x-www-form-urlencoded',
          'application/json; charset=latin1',
          'application/json;;;',
          ';',
          'multipart/form-data; boundary=x',
        )
        .map((other) => ({ bytes: Buffer.from(text), type: other })),
      // The same key twice, and keys with a special meaning elsewhere.
      fc.constant({
        bytes: Buffer.from(text.replace(/^\{(.*)\}$/s, (_, inner) => `{${inner || '"a":1'},${inner || '"a":2'}}`)),
        type,
      }),
      fc.constant({
        bytes: Buffer.from(
          text.replace(/^\{/, '{"__proto__":{"userId":"bob","admin":true},"constructor":{"prototype":{}},'),
        ),
        type,
      }),
      fc
        .constantFrom(40, 70, 5_000)
        .map((depth) => ({ bytes: Buffer.from(`${'{"a":['.repeat(depth)}1${']}'.repeat(depth)}`), type })),
      fc.constant({ bytes: Buffer.from(`{"message":"${'y'.repeat(250_000)}"}`), type }),
      fc.uint8Array({ maxLength: 40 }).map((bytes) => ({ bytes: Buffer.from(bytes), type })),
      fc.constant({ bytes: Buffer.from(`\ufeff${text}`), type }),
      fc.constant({ bytes: Buffer.alloc(0) }),
    )
  })
  return fc.oneof(
    { weight: 4, arbitrary: good.map(json) },
    { weight: 4, arbitrary: nearly(good).map(json) },
    { weight: 1, arbitrary: anyJson.map(json) },
    { weight: 3, arbitrary: broken },
  )
}

/** Escaped as a client would, or only so far that the request line stays one. */
const inPath = (text: string, escaped: boolean): string =>
  escaped ? encodeURIComponent(text.toWellFormed()) : text.replace(/[\s\0]/g, '+')

const WAITS = new Set(['timeout_seconds', 'wait'])

export function requests(operation: Operation, { ids, keys }: Pick<Target, 'ids' | 'keys'>): fc.Arbitrary<FuzzRequest> {
  const parameters = operation.parameters ?? []
  const value = (name: string, schema: JsonSchema) => {
    // A request with a wait of hours would be served for hours.
    const good = WAITS.has(name) ? fc.constantFrom('0', '0', '0', '1') : valid(schema, name, ids).map(String)
    return fc.oneof({ weight: 8, arbitrary: good }, { weight: 1, arbitrary: nastyText })
  }
  const given = fc.record(
    Object.fromEntries(parameters.map((it) => [`${it.in} ${it.name}`, value(it.name, it.schema)])),
    {
      requiredKeys: parameters.filter((it) => it.required || WAITS.has(it.name)).map((it) => `${it.in} ${it.name}`),
    },
  )
  const method = fc.oneof(
    { weight: 9, arbitrary: fc.constant(operation.method.toUpperCase()) },
    fc.constantFrom(...METHODS),
  )
  const caller = fc.oneof(
    { weight: 6, arbitrary: fc.constant('ann' as const) },
    { weight: 3, arbitrary: fc.constant('root' as const) },
    { weight: 1, arbitrary: fc.constantFrom('wrong' as const, 'nobody' as const) },
  )
  const withBody = operation.requestBody !== undefined
  return fc
    .record({
      method,
      caller,
      given,
      escaped: fc.constantFrom(true, true, true, false),
      more: fc.option(fc.tuple(nastyText, nastyText), { freq: 1 }),
      body: withBody ? bodies(operation, ids) : fc.option(bodies(operation, ids), { freq: 2 }),
      pieces: fc.constantFrom(1, 1, 1, 2, 7),
      length: fc.constantFrom('told', 'told', 'told', 'chunked'),
      header: fc.option(
        fc.tuple(
          fc.constantFrom(
            'x-request-id',
            'accept',
            'last-event-id',
            'idempotency-key',
            'cookie',
            'te',
            'x-forwarded-for',
            'upgrade',
            'x-user-id',
          ),
          nastyText,
        ),
        { freq: 3 },
      ),
    })
    .map((it): FuzzRequest => {
      const named = (place: string): [string, string][] =>
        Object.entries(it.given as Record<string, string>)
          .filter(([key]) => key.startsWith(`${place} `))
          .map(([key, text]) => [key.slice(place.length + 1), text])
      const path = named('path').reduce(
        (text, [name, part]) => text.replace(`{${name}}`, () => inPath(part, it.escaped)),
        operation.path,
      )
      const pairs = [...named('query'), ...(it.more === null ? [] : [it.more])]
      const query = pairs.map(([name, text]) => `${inPath(name, true)}=${inPath(text, it.escaped)}`).join('&')
      const headers: [string, string][] = [['host', 'localhost']]
      if (it.caller === 'wrong') headers.push(['authorization', `Bearer ${keys.ann.slice(0, -4)}zzzz`])
      else if (it.caller !== 'nobody') headers.push(['authorization', `Bearer ${keys[it.caller]}`])
      for (const [name, text] of [...named('header'), ...(it.header === null ? [] : [it.header])])
        headers.push([name, headerSafe(text)])
      const body = it.body?.bytes ?? Buffer.alloc(0)
      if (it.body?.type !== undefined) headers.push(['content-type', it.body.type])
      if (it.body?.encoding !== undefined) headers.push(['content-encoding', it.body.encoding])
      const chunked = it.length === 'chunked' && body.length > 0
      if (chunked) headers.push(['transfer-encoding', 'chunked'])
      else if (body.length > 0 || it.method === 'POST') headers.push(['content-length', String(body.length)])
      const framed = chunked
        ? Buffer.concat([Buffer.from(`${body.length.toString(16)}\r\n`), body, Buffer.from('\r\n0\r\n\r\n')])
        : body
      const target = query === '' ? path : `${path}?${query}`
      return { operation, caller: it.caller, method: it.method, target, headers, body: framed, pieces: it.pieces }
    })
}

/** A header that would be two is another request; those are in the tests of the wire itself. */
const headerSafe = (text: string): string => text.replace(/[\r\n]/g, ' ')
