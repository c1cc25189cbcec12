// Finds links to missing headings. VitePress checks that the page exists, but not the heading.
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * @param site the folder of the built site
 * @returns one line for each link with an anchor that its page does not have
 */
export function deadAnchors(site: string): string[] {
  const files = readdirSync(site, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.html'))
  const pages = new Map<string, string>(
    files.map((file) => [`/${file.slice(0, -'.html'.length)}`, readFileSync(join(site, file), 'utf8')] as const),
  )
  const ids = new Map([...pages].map(([path, html]) => [path, new Set(valuesOf(html, 'id'))] as const))
  const dead = new Set<string>()
  for (const [path, html] of pages)
    for (const href of valuesOf(html, 'href')) {
      const [target = '', anchor] = href.split('#')
      if (anchor === undefined || anchor === '' || /^\w+:/.test(target)) continue
      const there = target === '' ? path : target
      if (ids.get(there)?.has(decodeURIComponent(anchor)) !== true) dead.add(`${path}: ${href}`)
    }
  return [...dead].toSorted()
}

const valuesOf = (html: string, attribute: 'id' | 'href'): string[] =>
  [...html.matchAll(new RegExp(` ${attribute}="([^"]*)"`, 'g'))].map((it) => it[1]!)
