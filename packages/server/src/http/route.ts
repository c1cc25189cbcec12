// A route is data: its input, its answers and a handler. Validation, 405 and the OpenAPI document are derived from it.
import type { HttpBindings } from '@hono/node-server'
import type { Principal } from '@oxbow/core'
import type { Context, Hono } from 'hono'
import type { z } from 'zod'
import { type BodyLimits, readJson } from './body.ts'
import { HttpError } from './errors.ts'
import type { RouteInfo } from './route-info.ts'
import { only } from './schemas.ts'

export interface AppEnv {
  readonly Bindings: HttpBindings
  readonly Variables: {
    requestId: string
    route: string
    /** Set by the guard: the authenticated principal, or `anybody` where authentication is not required. */
    caller: (Principal & { readonly tenant: string }) | 'anybody' | undefined
    /** The public part of the API key. */
    keyId: string | undefined
    /** The code with which credentials were refused. */
    refusal: string | undefined
    /** The code of the error in the answer. */
    errorCode: string | undefined
    corsHeaders: Readonly<Record<string, string>> | undefined
  }
}
export type AppContext = Context<AppEnv>

export interface Route extends RouteInfo {
  readonly handle: (request: never, c: AppContext) => Response | Promise<Response>
}

/** The checks before every request. They throw the refusal. */
export interface Guard {
  /** Runs before anything of the request is read. */
  enter(c: AppContext, route: Pick<Route, 'access'>): Promise<void>
  /** Checks the user and tenant in a query or body, on every route. */
  checkNames(c: AppContext, given: unknown): void
}

type Parsed<S> = S extends z.ZodType ? z.output<S> : undefined

/** Infers the handler's types from the schemas beside it. */
export function route<
  P extends z.ZodObject | undefined = undefined,
  Q extends z.ZodObject | undefined = undefined,
  B extends z.ZodType | undefined = undefined,
>(
  definition: Omit<Route, 'params' | 'query' | 'body' | 'handle'> & {
    readonly params?: P
    readonly query?: Q
    readonly body?: B
    readonly handle: (
      request: { readonly params: Parsed<P>; readonly query: Parsed<Q>; readonly body: Parsed<B> },
      c: AppContext,
    ) => Response | Promise<Response>
  },
): Route {
  return definition as unknown as Route
}

export function register(app: Hono<AppEnv>, routes: readonly Route[], limits: BodyLimits, guard: Guard): void {
  for (const it of routes) {
    // Applied even where a route extends its query: unknown fields are rejected by name.
    const querySchema = only(it.query?.shape ?? {})
    app.on(it.method.toUpperCase(), it.path.replace(/\{(\w+)\}/g, ':$1'), async (c) => {
      c.set('route', it.path)
      // First, so that anonymous callers learn nothing from validation errors.
      await guard.enter(c, it)
      guard.checkNames(c, c.req.query())
      const params = it.params && parse(it.params, c.req.param(), 'path')
      const query = parse(querySchema, c.req.query(), 'query')
      const given = it.body && (await bodyOf(c, it, limits))
      guard.checkNames(c, given)
      const body = it.body && parse(it.body, given, 'body')
      return it.handle({ params, query, body } as never, c)
    })
  }
  const patterns = routes.map((it) => ({ method: it.method.toUpperCase(), pattern: pathPattern(it.path) }))
  app.notFound((c) => {
    const allowed = patterns.filter(({ pattern }) => pattern.test(c.req.path)).map((it) => it.method)
    if (allowed.length === 0)
      throw new HttpError(
        404,
        'not_found',
        `There is no route at ${clip(c.req.path)}. See /openapi.json for all routes.`,
      )
    const allow = [...new Set(allowed.includes('GET') ? ['GET', 'HEAD', ...allowed] : allowed)].join(', ')
    throw new HttpError(405, 'method_not_allowed', `${clip(c.req.path)} only accepts ${allow}.`, { allow })
  })
}

const pathPattern = (path: string): RegExp => new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}$`)
const clip = (text: string): string => (text.length > 200 ? `${text.slice(0, 200)}…` : text)

async function bodyOf(c: AppContext, { bodyOptional }: Route, limits: BodyLimits): Promise<unknown> {
  const { 'content-length': length, 'transfer-encoding': encoding } = c.req.header()
  if (bodyOptional === true && (length ?? '0') === '0' && encoding === undefined) return {}
  return readJson(c, limits)
}

/** @throws HttpError 400 `invalid_request`, naming each invalid field */
function parse(schema: z.ZodType, value: unknown, where: string): unknown {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const issues = parsed.error.issues.slice(0, 8).map((issue) => sentenceOf(issue, where))
  throw new HttpError(400, 'invalid_request', `${[...new Set(issues)].join('; ')}.`.replace(/\.+$/, '.'))
}

function sentenceOf({ path, message }: z.core.$ZodIssue, where: string): string {
  const field = path.reduce<string>(
    (text, part) =>
      typeof part === 'number' ? `${text}[${part}]` : text === '' ? String(part) : `${text}.${String(part)}`,
    '',
  )
  if (message.endsWith(' received undefined')) return `${field === '' ? `the ${where}` : field} is required`
  if (field === '') return /expected object/.test(message) ? `The ${where} must be a JSON object` : message
  return /^(must|is) /.test(message) ? `${field} ${message}` : `${field}: ${message}`
}
