// The proxy for an address, by the variables that Node and most programs read.

type Environment = Readonly<Record<string, string | undefined>>

/**
 * The proxy for an address, without possible secrets, or undefined. Lower-case variables win, as in Node.
 *
 * @example proxyFor('https://api.openai.com/v1', { HTTPS_PROXY: 'http://proxy:3128' }) // 'http://proxy:3128'
 */
export function proxyFor(address: string, environment: Environment): string | undefined {
  if (!URL.canParse(address)) return undefined
  const { protocol, hostname, port } = new URL(address)
  const scheme = protocol.replace(':', '')
  const proxy = environment[`${scheme}_proxy`] || environment[`${scheme.toUpperCase()}_PROXY`]
  if (!proxy || !URL.canParse(proxy)) return undefined
  const except = (environment.no_proxy || environment.NO_PROXY || '').split(/[\s,]+/).filter((it) => it !== '')
  if (except.some((it) => isExcepted(it.toLowerCase(), hostname.toLowerCase(), port))) return undefined
  const { protocol: how, host } = new URL(proxy)
  return `${how}//${host}`
}

function isExcepted(rule: string, host: string, port: string): boolean {
  if (rule === '*') return true
  const [, name = '', onlyPort] = /^(.*?)(?::(\d+))?$/.exec(rule) ?? []
  if (onlyPort !== undefined && onlyPort !== port) return false
  if (!/^\*?\./.test(name)) return host === name
  return host.endsWith(name.replace('*', ''))
}
