// A route without the framework's types. These declarations are published, and hono's do not compile with
// `skipLibCheck: false`.
import type { z } from 'zod'

export interface RouteAnswer {
  readonly description: string
  readonly schema?: z.ZodType
  /** Default `application/json`. */
  readonly contentType?: string
}

export interface RouteInfo {
  readonly method: 'get' | 'post' | 'delete'
  /** In OpenAPI syntax: `/api/sessions/{sessionId}`. */
  readonly path: string
  readonly id: string
  readonly summary: string
  /**
   * The required access when identity is enabled. Default `user`: any authenticated caller. `admin`: holders of
   * `oxbow:admin`. `optional`: everyone, with less detail for anonymous callers.
   */
  readonly access?: 'open' | 'optional' | 'user' | 'admin'
  readonly params?: z.ZodObject
  readonly query?: z.ZodObject
  readonly headers?: z.ZodObject
  readonly body?: z.ZodType
  /** A missing body counts as `{}`. */
  readonly bodyOptional?: boolean
  readonly answers: Readonly<Record<number, RouteAnswer>>
}

/** The service without its socket. */
export interface HttpApp {
  readonly routes: readonly { readonly method: string; readonly path: string }[]
  fetch(request: Request, bindings?: object): Response | Promise<Response>
  request(path: string, init?: RequestInit, bindings?: object): Response | Promise<Response>
}

export interface ObservedRequest {
  readonly method: string
  /** The path pattern of the route, or `unmatched`. */
  readonly route: string
  readonly status: number
  readonly seconds: number
}
