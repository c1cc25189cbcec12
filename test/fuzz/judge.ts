// Invariants of every answer, whatever the request.
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import type { RawAnswer } from './client.ts'
import type { FuzzRequest, JsonSchema, Operation } from './generate.ts'
import { OF_BOB, SECRET, type Target } from './service.ts'

export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Omit<Operation, 'method' | 'path'>>>>>
  readonly components: { readonly schemas: Readonly<Record<string, JsonSchema>> }
}

export const operationsOf = ({ paths }: Document): Operation[] =>
  Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, it]): Operation => ({ ...it, method, path })),
  )

const ERROR: JsonSchema = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message'],
      properties: { code: { type: 'string', pattern: '^[a-z0-9_]+$' }, message: { type: 'string', minLength: 1 } },
    },
  },
}

/** Of this program, of its machine, and of its store. */
const INSIDE = [
  /\n\s+at .{1,200}:\d+:\d+/,
  /node_modules|node:internal/,
  /SQLITE_|\b(?:SELECT|INSERT|UPDATE) .{1,200}\b(?:FROM|INTO|SET)\b/,
  /(?:TypeError|RangeError|SyntaxError|ReferenceError|AssertionError|OxbowError|ZodError): /,
  /\[object Object\]|\bundefined\b/,
]

export function judge(target: Target, document: Document, mode: 'none' | 'api-keys') {
  const ajv = new Ajv2020({ strict: false, validateFormats: false, allErrors: true })
  const compiled = new Map<object, ValidateFunction>()
  const check = (schema: JsonSchema, value: unknown): string | undefined => {
    const validate = compiled.get(schema) ?? ajv.compile({ ...schema, components: document.components })
    compiled.set(schema, validate)
    return validate(value) ? undefined : ajv.errorsText(validate.errors).slice(0, 500)
  }

  /** Why the answer is wrong; nothing when it is right. */
  return function faultsOf(request: FuzzRequest, answer: RawAnswer, boundMs: number): string[] {
    const { operation, method, caller } = request
    const { status, headers, body, raw, ended, ms } = answer
    const faults: string[] = []
    // Who is answered before their body was read, on a connection that closes, may lose the answer while they still
    // send.
    if (status === undefined) return request.body.length > 100_000 ? [] : ['no answer']
    // The same may cost the end of a long answer.
    if (request.body.length > 0 && Buffer.byteLength(body) < Number(headers.get('content-length') ?? 0)) return []
    if (status >= 500 && !(operation.path === '/readyz' && status === 503)) faults.push(`status ${status}`)
    const type = (headers.get('content-type') ?? '').split(';')[0]
    const stream = type === 'text/event-stream'
    if (!ended && !stream) faults.push(`no end within ${boundMs} ms`)
    if (ms > boundMs && !stream) faults.push(`${ms.toFixed(0)} ms`)

    if (raw.includes(SECRET) || Object.values(target.keys).some((it) => raw.includes(it))) faults.push('tells a secret')
    // Whether there is a store and where is what /readyz is for.
    if (raw.includes(target.directory) && operation.path !== '/readyz') faults.push('tells a path')
    if (raw.includes(process.cwd())) faults.push('tells where the program is')
    if (operation.path !== '/openapi.json' && !stream)
      for (const it of INSIDE) if (it.test(raw) && !it.test(request.target)) faults.push(`tells ${String(it)}`)
    if (mode === 'api-keys' && caller !== 'root' && raw.includes(OF_BOB)) faults.push('tells what is another user’s')
    if (mode === 'api-keys' && (caller === 'nobody' || caller === 'wrong') && status < 300 && !isOpen(operation))
      faults.push(`${status} for a stranger`)
    if (headers.has('x-injected')) faults.push('a header was injected')
    // MCP has its own form for its refusals.
    const rpc = operation.path === '/mcp' && body.startsWith('{"jsonrpc":"2.0"')
    if (status >= 400 && method !== 'HEAD' && !rpc) {
      if (type !== 'application/json') faults.push(`an error of type ${type}`)
      else faults.push(...problems(check(ERROR, parsed(body)), 'the error'))
    }
    if (method === operation.method.toUpperCase() && type === 'application/json' && !rpc) {
      const declared = operation.responses[status] ?? operation.responses.default
      const schema = declared?.content['application/json']?.schema
      if (schema === undefined) faults.push(`${status} ${type} is not declared`)
      else faults.push(...problems(check(schema, parsed(body)), `the body of ${status}`))
    }
    if (status < 300 && method === operation.method.toUpperCase() && !stream && type !== 'application/json')
      if (operation.responses[status]?.content[type ?? ''] === undefined && type !== 'application/jsonl')
        faults.push(`${status} of type ${type} is not declared`)
    return faults
  }
}

const problems = (text: string | undefined, what: string): string[] => (text === undefined ? [] : [`${what}: ${text}`])

const isOpen = ({ path }: Operation): boolean => /^\/(healthz|readyz|openapi\.json)$/.test(path)

function parsed(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return Symbol.for('no JSON')
  }
}
