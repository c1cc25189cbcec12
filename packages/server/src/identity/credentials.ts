// Credentials in the headers of a request. Duplicates are refused: a proxy may have checked the other one.
import { type Credentials, type Refusal, refused } from './contract.ts'

export function valuesOf({ rawHeaders }: Credentials, name: string): string[] {
  const values: string[] = []
  for (let i = 0; i + 1 < rawHeaders.length; i += 2)
    if (rawHeaders[i]!.toLowerCase() === name) values.push(rawHeaders[i + 1]!.trim())
  return values
}

const MAX_LENGTH = 16_384
const BEARER = /^Bearer +([A-Za-z0-9._~+/=-]+)$/i

/** The only token of a request, from `Authorization: Bearer` or from the header `also`. */
export function tokenOf(credentials: Credentials, also?: string): string | Refusal {
  const authorization = valuesOf(credentials, 'authorization')
  // Another scheme may belong to a proxy.
  const bearers = authorization.filter((it) => /^Bearer\b/i.test(it))
  const others = also === undefined ? [] : valuesOf(credentials, also)
  if (authorization.length > 1 || bearers.length + others.length > 1)
    return refused('credentials_ambiguous', 'The request has more than one set of credentials. Send one.')
  const token = bearers.length === 1 ? BEARER.exec(bearers[0]!)?.[1] : others[0]
  if (bearers.length + others.length === 0)
    return refused(
      'credentials_missing',
      `Credentials are required. Send "Authorization: Bearer …"${also === undefined ? '' : ' or "X-API-Key: …"'}.`,
    )
  if (token === undefined || token === '' || token.length > MAX_LENGTH) return invalid()
  return token
}

export const invalid = (): Refusal => refused('credentials_invalid', 'The credentials are not valid.')

/**
 * The named cookies as a `Cookie` header, in the order of the request; '' when there are none. `ambiguous` when two
 * have the same name: servers differ in which of them they read.
 */
export function cookiesOf(credentials: Credentials, names: readonly string[]): string {
  const found = valuesOf(credentials, 'cookie')
    .flatMap((it) => it.split(';'))
    .map((it) => it.trim())
    .filter((it) => names.includes(nameOf(it)))
  return new Set(found.map(nameOf)).size < found.length ? 'ambiguous' : found.join('; ')
}

/** The values of a `Cookie` header. */
export const valuesIn = (cookies: string): string[] => cookies.split('; ').map((it) => it.slice(it.indexOf('=') + 1))

const nameOf = (cookie: string): string => cookie.split('=', 1)[0]!.trim()
