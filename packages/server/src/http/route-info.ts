// What a route is, without the framework's types: these declarations are published, and those of hono do not compile with
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
  /** With OpenAPI's placeholders: `/api/sessions/{sessionId}`. */
  readonly path: string
  readonly id: string
  readonly summary: string
  /**
   * Who may come, with identity on. Default `user`: whoever has proven who they are. `admin`: holders of `oxbow:admin`.
   * `optional`: everybody, but strangers see less.
   */
  readonly access?: 'open' | 'optional' | 'user' | 'admin'
  readonly params?: z.ZodObject
  readonly query?: z.ZodObject
  readonly headers?: z.ZodObject
  readonly body?: z.ZodType
  /** A request without a body counts as `{}`. */
  readonly bodyOptional?: boolean
  readonly answers: Readonly<Record<number, RouteAnswer>>
}

/** The service without a socket. */
export interface HttpApp {
  readonly routes: readonly { readonly method: string; readonly path: string }[]
  fetch(request: Request, bindings?: object): Response | Promise<Response>
  request(path: string, init?: RequestInit, bindings?: object): Response | Promise<Response>
}

export interface ObservedRequest {
  readonly method: string
  /** The route's pattern, or `unmatched`. */
  readonly route: string
  readonly status: number
  readonly seconds: number
}
