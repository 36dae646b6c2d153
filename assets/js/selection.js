// Which token is being looked at: pinned, else hovered, else focused.

export function createSelection(onChange) {
  const state = { pinned: null, hovered: null, focused: null };

  function set(name, key) {
    if (state[name] === key) return;
    state[name] = key;
    onChange();
  }

  function active() {
    return state.pinned ?? state.hovered ?? state.focused;
  }

  return {
    active,
    pinned: () => state.pinned,
    pointed: () => state.hovered ?? state.focused,
    hover: (key) => set("hovered", key),
    focus: (key) => set("focused", key),
    togglePin: (key) => set("pinned", state.pinned === key ? null : key),
    pin: (key) => set("pinned", key),
    unpin() {
      const had = state.pinned !== null;
      set("pinned", null);
      return had;
    },
    clear() {
      Object.assign(state, { pinned: null, hovered: null, focused: null });
      onChange();
    },
  };
}
