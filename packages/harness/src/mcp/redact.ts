// Removes the secrets of a server's configuration from every message.
import { isStdio, type McpServer } from './options.ts'

const MIN_SECRET = 4

/** Replaces the secrets of the server's configuration. */
export function secretsRedactor(server: McpServer): (text: string) => string {
  const given = isStdio(server)
    ? Object.values(server.env ?? {})
    : [
        ...Object.values(server.headers ?? {}),
        ...(server.auth !== undefined && 'clientSecret' in server.auth ? [server.auth.clientSecret ?? ''] : []),
        ...secretsOf(server.url),
      ]
  const secrets = given
    .flatMap((it) => [it, ...it.split(/\s+/)])
    .filter((it) => it.length >= MIN_SECRET)
    .sort((a, b) => b.length - a.length)
  return (text) => secrets.reduce((done, it) => done.replaceAll(it, '…'), text)
}

/** A URL may hold a password, or a key in its query. */
function secretsOf(url: string): string[] {
  const { username, password, search, searchParams } = new URL(url)
  return [username, password, search, ...searchParams.values()].flatMap((it) => [it, decodeURIComponent(it)])
}
