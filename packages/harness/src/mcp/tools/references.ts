// References by name (`$id`, `$anchor`, `#name`), rewritten as pointers into one schema.

type Json = Record<string, unknown>

/** The address of a schema without one: relative references need a base. */
const NOWHERE = 'mcp://schema/'

/** Collects a schema's names and references, then rewrites each reference as a pointer to its target. */
export class References {
  /** By address, without a fragment for a schema, with one for an anchor. */
  readonly #places = new Map<string, string>([[NOWHERE, '']])
  readonly #open: { readonly schema: Json; readonly base: string }[] = []

  /**
   * @param given the schema as the server wrote it
   * @param made the schema whose references are rewritten
   * @returns the base of the references below it
   */
  add(given: Json, made: Json, { path, base }: { readonly path: string; readonly base: string }): string {
    // Drafts up to 4 call it `id`; a `#name` in it is an anchor.
    const id = [given.$id, given.id].find((it) => typeof it === 'string') as string | undefined
    const isAnchor = id?.startsWith('#') === true
    const own = id === undefined || isAnchor ? base || NOWHERE : addressOf(id, base)
    if (id !== undefined && !isAnchor) this.#note(own, path)
    for (const anchor of [given.$anchor, given.$dynamicAnchor, isAnchor ? id.slice(1) : undefined])
      if (typeof anchor === 'string' && anchor !== '') this.#note(`${own}#${anchor}`, path)
    this.#open.push({ schema: made, base: own })
    return own
  }

  #note(address: string, path: string): void {
    if (!this.#places.has(address)) this.#places.set(address, path)
  }

  /** A reference that does not resolve in the schema is unchanged. */
  resolve(): void {
    for (const { schema, base } of this.#open) {
      const { $ref, $dynamicRef } = schema
      if (typeof $ref === 'string') schema.$ref = this.#place($ref, base) ?? $ref
      if (typeof $dynamicRef !== 'string' || $ref !== undefined) continue
      const place = this.#place($dynamicRef, base)
      if (place === undefined) continue
      // Within one document both kinds of reference lead to the same place.
      delete schema.$dynamicRef
      schema.$ref = place
    }
  }

  #place(reference: string, base: string): string | undefined {
    const [address, fragment = ''] = addressOf(reference, base).split('#')
    const named = this.#places.get(`${address}#${fragment}`)
    if (named !== undefined) return `#${named}`
    const root = this.#places.get(address!)
    return root !== undefined && (fragment === '' || fragment.startsWith('/')) ? `#${root}${fragment}` : undefined
  }
}

function addressOf(reference: string, base: string): string {
  const from = base === '' ? NOWHERE : base
  // A URN cannot be the base of a fragment.
  if (reference.startsWith('#')) return `${from}${reference}`
  return URL.canParse(reference, from) ? new URL(reference, from).href.replace(/#$/, '') : reference
}
