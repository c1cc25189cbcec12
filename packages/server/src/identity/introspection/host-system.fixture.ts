// A fake RuoYi: sessions behind tokens, and `/getInfo` with the code in the body and always status 200.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface HostUser {
  readonly userName: string
  readonly userId?: number
  readonly deptId?: number
  readonly roles?: readonly string[]
  readonly permissions?: readonly string[]
  /** The roles below the user, with their data scopes. */
  readonly roleRecords?: readonly unknown[]
}

export interface HostSystem {
  readonly url: string
  readonly sessions: Map<string, HostUser>
  /** The requests that `/getInfo` received. */
  readonly asked: IncomingMessage[]
  /** Replaces the answer from now on. Undefined: the normal answer. */
  behave(how: ((request: IncomingMessage, response: ServerResponse) => void) | undefined): void
  close(): Promise<void>
}

const SIGNED_OUT = { code: 401, msg: '请求访问：/getInfo，认证失败，无法访问系统资源' }

export async function hostSystem(users: Readonly<Record<string, HostUser>> = {}): Promise<HostSystem> {
  const sessions = new Map(Object.entries(users))
  const asked: IncomingMessage[] = []
  let other: ((request: IncomingMessage, response: ServerResponse) => void) | undefined
  const server = createServer((request, response) => {
    asked.push(request)
    if (other !== undefined) return other(request, response)
    const bearer = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1]
    const cookie = /(?:^|; )Admin-Token=([^;]+)/.exec(request.headers.cookie ?? '')?.[1]
    const user = sessions.get(bearer ?? cookie ?? '')
    response.writeHead(200, { 'content-type': 'application/json;charset=UTF-8' })
    if (user === undefined) return response.end(JSON.stringify(SIGNED_OUT))
    const { roles = [], permissions = [], roleRecords, ...rest } = user
    const known = { admin: false, ...rest, ...(roleRecords && { roles: roleRecords }) }
    response.end(JSON.stringify({ msg: '操作成功', code: 200, permissions, roles, user: known }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/getInfo`,
    sessions,
    asked,
    behave: (how) => {
      other = how
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
