//! Values drawn from an input's bytes, followed by zeros, so that every input has a meaning.

/// Remaining bytes of an input.
pub struct Draw<'a>(&'a [u8]);

impl<'a> Draw<'a> {
    /// All of them.
    pub fn new(data: &'a [u8]) -> Draw<'a> {
        Draw(data)
    }

    /// Whether all bytes are used up.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Draw a byte.
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    /// Draw one bit of a byte.
    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// Two bytes.
    pub fn word(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// Four bytes.
    pub fn long(&mut self) -> u32 {
        self.word() as u32 | (self.word() as u32) << 16
    }

    /// Draw an element of a list.
    pub fn one<'b, T>(&mut self, of: &'b [T]) -> &'b T {
        &of[self.byte() as usize % of.len()]
    }

    /// A number of any size: small ones from one byte, multiples of `unit`, or 32 bits.
    pub fn number(&mut self, unit: u32) -> u32 {
        match self.byte() % 4 {
            0 => self.byte() as u32,
            1 => (self.byte() as u32).wrapping_mul(unit),
            2 => (self.byte() as u32).wrapping_mul(unit).wrapping_add(self.byte() as i8 as u32),
            _ => self.long(),
        }
    }
}
