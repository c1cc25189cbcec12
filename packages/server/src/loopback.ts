// Without identity, only this machine may connect.
import { isIP } from 'node:net'
import { OxbowError } from '@oxbow/core'

const isLoopback = (host: string): boolean => {
  const name = bare(host)
  return name === 'localhost' || name === '::1' || (isIP(name) === 4 && name.startsWith('127.'))
}

const bare = (host: string): string => host.toLowerCase().replace(/^\[(.*)\]$/, '$1')

/** @throws OxbowError `identity_missing` */
export function assertMayListen(host: string, identity: string): void {
  if (identity !== 'none' || isLoopback(host)) return
  throw new OxbowError(
    'identity_missing',
    `The service will not listen on ${JSON.stringify(host)}: no identity is configured (identity.mode is "none"), so ` +
      'anyone who can reach it could read every conversation. Set identity.mode (see docs/deploy/identity.md), or server.host to ' +
      '127.0.0.1, ::1 or localhost.',
  )
}

/**
 * Whether the Host header names this machine. A page whose host name was pointed at 127.0.0.1 (DNS rebinding) sends its
 * own name.
 */
export function hostAllowed(header: string | undefined, configured: string): boolean {
  if (header === undefined) return false
  const name = bare(header.replace(/:\d+$/, ''))
  return name === 'localhost' || name === '127.0.0.1' || name === '::1' || name === bare(configured)
}

/** Whether a Host header is one of these names. A name without a port matches every port. */
export function hostListed(header: string | undefined, names: readonly string[]): boolean {
  if (header === undefined) return false
  const full = header.toLowerCase()
  return names.some((it) => it.toLowerCase() === full || bare(it) === bare(full.replace(/:\d+$/, '')))
}
