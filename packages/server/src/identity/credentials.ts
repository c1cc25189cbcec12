// Credentials as they stand in the head of a request. Two of a kind are refused: something in between may have judged
// the other one.
import { type Credentials, type Refusal, refused } from './contract.ts'

export function valuesOf({ rawHeaders }: Credentials, name: string): string[] {
  const values: string[] = []
  for (let i = 0; i + 1 < rawHeaders.length; i += 2)
    if (rawHeaders[i]!.toLowerCase() === name) values.push(rawHeaders[i + 1]!.trim())
  return values
}

const MAX_LENGTH = 16_384
const BEARER = /^Bearer +([A-Za-z0-9._~+/=-]+)$/i

/** The one token of a request, from `Authorization: Bearer`, or from `also`. */
export function tokenOf(credentials: Credentials, also?: string): string | Refusal {
  const authorization = valuesOf(credentials, 'authorization')
  // Another scheme may belong to a proxy in between.
  const bearers = authorization.filter((it) => /^Bearer\b/i.test(it))
  const others = also === undefined ? [] : valuesOf(credentials, also)
  if (authorization.length > 1 || bearers.length + others.length > 1)
    return refused('credentials_ambiguous', 'The request brings more than one set of credentials. Send one.')
  const token = bearers.length === 1 ? BEARER.exec(bearers[0]!)?.[1] : others[0]
  if (bearers.length + others.length === 0)
    return refused(
      'credentials_missing',
      `Say who you are: send "Authorization: Bearer …"${also === undefined ? '' : ' or "X-API-Key: …"'}.`,
    )
  if (token === undefined || token === '' || token.length > MAX_LENGTH) return invalid()
  return token
}

export const invalid = (): Refusal => refused('credentials_invalid', 'The credentials are not valid.')

/** The cookies of these names as a `Cookie` header, in the order in which they came; '' when there is none. */
export function cookiesOf(credentials: Credentials, names: readonly string[]): string {
  return valuesOf(credentials, 'cookie')
    .flatMap((it) => it.split(';'))
    .map((it) => it.trim())
    .filter((it) => names.includes(it.split('=', 1)[0]!.trim()))
    .join('; ')
}
